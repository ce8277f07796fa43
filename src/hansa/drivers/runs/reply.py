"""What does a synchronous call answer? What the script left, or else what it printed; as OSCAR's clients expect it."""

import base64
import io
import zipfile
from collections.abc import Callable, Iterable
from typing import TypeVar

from hansa.drivers.runs.stager.beneath import LeftFile, TooDeep, TooMany, Unreadable
from hansa.kernel import errors, quantities

T = TypeVar("T")
LARGEST = 64 * 2**20
MOST_NAMES = 10_000
"""Files, folders and links that are looked at for an answer."""
_ENTRY = 128  # bytes of a file in a zip beyond its content and its name, which stands there twice


class ReplyTooLarge(errors.TooLarge):
    """What the script left is too large for an answer."""

    code = "run.reply-too-large"


class Scales:
    """Tells whoever ordered a run how much of its answer is held in memory, before it is."""

    def __init__(self, weigh: Callable[[int], None] | None) -> None:
        self._weigh = weigh
        self.refused: errors.HansaError | None = None

    def add(self, size: int) -> None:
        """Raises what whoever ordered it raises; that is `refused` from then on."""
        try:
            if self._weigh is not None and size:
                self._weigh(size)
        except errors.HansaError as error:
            self.refused = error
            raise


def size_of(files: Iterable[LeftFile]) -> int:
    """Bytes that an answer made of them has at most."""
    total = _told(lambda: sum(map(_share, files)))
    _require_small(total)
    return total * 4 // 3


def of_files(files: Iterable[LeftFile]) -> bytes | None:
    """One file in base64, several as a zip in base64; None if there is none."""
    return _told(lambda: _packed(files))


def _told(read: Callable[[], T]) -> T:
    try:
        return read()
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
        total += _share(file)
        _require_small(total)
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


def _share(file: LeftFile) -> int:
    """Of an answer. Many empty files are not nothing: their names may be long."""
    return file.size + 2 * len(file.relative.encode()) + _ENTRY


def _require_small(total: int) -> None:
    if total > LARGEST:
        raise ReplyTooLarge(
            f"the script left more than {quantities.show_size(LARGEST)}",
            hint="give the service an output bucket for large results",
        )
