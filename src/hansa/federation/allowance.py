"""May it happen once more? Much at once, and then so often a second. Pure."""


class Allowance:
    __slots__ = ("_at", "_left", "_most", "_per_second")

    def __init__(self, most: int, per_second: float) -> None:
        self._most = most
        self._per_second = per_second
        self._left = float(most)
        self._at: float | None = None

    def spend(self, now: float) -> bool:
        """Whether one more is allowed, which is then used up."""
        since = 0.0 if self._at is None else max(0.0, now - self._at)
        self._left = min(self._most, self._left + since * self._per_second)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
