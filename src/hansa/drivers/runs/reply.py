"""What does a synchronous call answer? What the script left, or else what it printed; as OSCAR's clients expect it."""

import base64
import io
import zipfile
from pathlib import Path

from hansa.drivers.runs.left_files import left_files
from hansa.kernel import errors, quantities

LARGEST = 64 * 2**20


class ReplyTooLarge(errors.TooLarge):
    """What the script left is too large for an answer."""

    code = "run.reply-too-large"


def of_files(folder: Path, owner: int) -> bytes | None:
    """One file in base64, several as a zip in base64; None if there is none."""
    first: tuple[str, bytes] | None = None
    packed: zipfile.ZipFile | None = None
    buffer = io.BytesIO()
    total = 0
    for file in left_files(folder, owner):
        total += file.size
        if total > LARGEST:
            raise ReplyTooLarge(
                f"the script left more than {quantities.show_size(LARGEST)}",
                hint="give the service an output bucket for large results",
            )
        content = file.path.read_bytes()
        if first is None:
            first = file.relative, content
            continue
        if packed is None:
            packed = zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED)
            packed.writestr(*first)
        packed.writestr(file.relative, content)
    if first is None:
        return None
    if packed is None:
        return base64.b64encode(first[1])
    packed.close()
    return base64.b64encode(buffer.getvalue())
