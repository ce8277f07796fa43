"""From where must a stream be read again after a crash? From before the first news whose work is still under way."""


class StreamPosition:
    def __init__(self, cursor: int | None) -> None:
        self._read = cursor  # of the latest news
        self._number = 0
        self._open: dict[int, tuple[int | None, int]] = {}  # cursor before it, and parts left

    def begin(self, cursor: int, parts: int) -> int:
        """News was read whose work has so many parts. Returns the number under which each part ends."""
        self._number += 1
        if parts:
            self._open[self._number] = (self._read, parts)
        self._read = cursor
        return self._number

    def end(self, number: int) -> None:
        """One part is done."""
        before, parts = self._open.pop(number)
        if parts > 1:
            self._open[number] = (before, parts - 1)

    @property
    def done(self) -> int | None:
        """Nothing up to here is under way; None if that is where we began, and nobody gave us a cursor."""
        return self._open[min(self._open)][0] if self._open else self._read
