"""What does a run get as its input? A file or a text, base64-coded as OSCAR's clients do, in pieces."""

import base64
import io
import os
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hansa.kernel import errors

_PIECE = 3 * (1 << 18)  # a multiple of 3, so that pieces can be coded one by one


@dataclass(frozen=True, slots=True)
class Input:
    open: Callable[[], IO[bytes]]
    size: int
    encode: bool

    @property
    def length(self) -> int:
        """Bytes on the wire."""
        return -(-self.size // 3) * 4 if self.encode else self.size

    def pieces(self) -> Iterator[bytes]:
        """What travels."""
        with self.open() as source:
            while piece := source.read(_PIECE):
                yield base64.b64encode(piece) if self.encode else piece


def of(file: str | None, text: str | None, *, encode: bool = True) -> Input:
    """The input a person named. Raises `Invalid` for a file that cannot be read."""
    if file is None:
        return held((text or "").encode(), encode=encode)
    if file == "-":
        return held(sys.stdin.buffer.read(), encode=encode)
    path = Path(file)
    try:
        with path.open("rb") as source:
            kind = os.fstat(source.fileno())
            if not stat.S_ISREG(kind.st_mode):  # a pipe can be read once only and does not know its length
                return held(source.read(), encode=encode)
        return Input(lambda: path.open("rb"), kind.st_size, encode)
    except OSError as error:
        raise errors.Invalid(f"cannot read {path}: {error.strerror}") from None


def held(content: bytes, *, encode: bool = True) -> Input:
    return Input(lambda: io.BytesIO(content), len(content), encode)
