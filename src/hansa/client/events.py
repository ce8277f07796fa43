"""What does a stream of server-sent events say? Bytes in, events out, however they were cut. No IO.

As the standard has it, but for what no hub sends: a byte order mark, and the field `retry`.
"""

from dataclasses import dataclass, field

from hansa.client import errors

_MOST = 64 * 2**20  # bytes of one event; a hub's largest is the whole inventory


@dataclass(frozen=True, slots=True)
class Event:
    kind: str
    data: bytes
    id: str = ""


@dataclass(slots=True)
class Reader:
    """Keeps what is not a whole event yet."""

    _line: bytearray = field(default_factory=bytearray)
    _data: list[bytes] = field(default_factory=list)
    _size: int = 0
    _kind: str = ""
    _id: str = ""
    _after_return: bool = False

    def feed(self, piece: bytes) -> list[Event]:
        found = []
        for line in self._lines(piece):
            if line:
                self._field(line)
            elif (event := self._whole()) is not None:
                found.append(event)
        if len(self._line) + self._size > _MOST:
            raise errors.Unexpected("an event is larger than any a hub sends")
        return found

    def _lines(self, piece: bytes) -> list[bytes]:
        if self._after_return and piece.startswith(b"\n"):
            piece = piece[1:]
        self._after_return = piece.endswith(b"\r")
        piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self._line += piece
        if b"\n" not in piece:  # a large event comes in many pieces; look at each once
            return []
        *lines, rest = bytes(self._line).split(b"\n")
        self._line = bytearray(rest)
        return lines

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")  # a comment has no name
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._size += len(value)
        elif name == b"event":
            self._kind = value.decode(errors="replace")
        elif name == b"id":
            self._id = value.decode(errors="replace")

    def _whole(self) -> Event | None:
        data, kind = self._data, self._kind
        self._data, self._kind, self._size = [], "", 0
        return Event(kind or "message", b"\n".join(data), self._id) if data else None
