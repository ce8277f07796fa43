"""What does a synchronous call answer? What the script left, or else what it printed; as OSCAR's clients expect it."""

import base64
import io
import zipfile
from collections.abc import Iterable

from hansa.drivers.runs.stager.beneath import LeftFile, TooDeep, TooMany, Unreadable
from hansa.kernel import errors, quantities

LARGEST = 64 * 2**20
MOST_NAMES = 10_000
"""Files, folders and links that are looked at for an answer."""


class ReplyTooLarge(errors.TooLarge):
    """What the script left is too large for an answer."""

    code = "run.reply-too-large"


def of_files(files: Iterable[LeftFile]) -> bytes | None:
    """One file in base64, several as a zip in base64; None if there is none."""
    try:
        return _packed(files)
    except (TooDeep, Unreadable) as error:
        raise errors.Invalid(str(error)) from None
    except TooMany as error:
        raise ReplyTooLarge(f"{error}: pack its results into one file, such as a tar archive") from None


def _packed(files: Iterable[LeftFile]) -> bytes | None:
    first: tuple[str, bytes] | None = None
    packed: zipfile.ZipFile | None = None
    buffer = io.BytesIO()
    total = 0
    for file in files:
        total += file.size
        if total > LARGEST:
            raise ReplyTooLarge(
                f"the script left more than {quantities.show_size(LARGEST)}",
                hint="give the service an output bucket for large results",
            )
        content = file.read()
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
