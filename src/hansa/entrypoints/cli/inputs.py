"""What does a run get as its input? A file or a text, base64-coded as OSCAR's clients do, in pieces."""

import base64
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hansa.kernel import errors

_PIECE = 3 * (1 << 18)  # a multiple of 3, so that pieces can be coded one by one


@dataclass(slots=True)
class Input:
    source: IO[bytes]
    size: int
    encode: bool

    @property
    def length(self) -> int:
        """Bytes on the wire."""
        return -(-self.size // 3) * 4 if self.encode else self.size

    def pieces(self) -> Iterator[bytes]:
        """What travels."""
        with self.source:
            while piece := self.source.read(_PIECE):
                yield base64.b64encode(piece) if self.encode else piece


def of(file: str | None, text: str | None, *, encode: bool = True) -> Input:
    if file is None:
        content = (text or "").encode()
    elif file == "-":
        content = sys.stdin.buffer.read()
    else:
        return _from_disk(Path(file), encode)
    return Input(io.BytesIO(content), len(content), encode)


def _from_disk(path: Path, encode: bool) -> Input:
    try:
        size = path.stat().st_size
        return Input(path.open("rb"), size, encode)
    except OSError as error:
        raise errors.Invalid(f"cannot read {path}: {error.strerror}") from None
