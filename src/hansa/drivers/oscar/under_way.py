"""How much of other clusters' answers is in memory while they are read? All together is bounded, and none of them may
have so much under way that less than that is left for the others: one that says much at once is told to wait.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

FREE = 2**20  # bytes of each answer; calls are bounded in number


class TooMuch(Exception):
    """This answer has no room now."""


class UnderWay:
    def __init__(self, most: int) -> None:
        self._most = most
        self.size = 0
        self._by_peer: Counter[str] = Counter()

    @contextmanager
    def answer(self, peer: str) -> Iterator["Share"]:
        """What one answer takes, until it is read."""
        share = Share(self, peer)
        try:
            yield share
        finally:
            self.size -= share.size
            self._by_peer[peer] -= share.size
            if not self._by_peer[peer]:
                del self._by_peer[peer]

    def add(self, peer: str, more: int) -> None:
        if self._by_peer[peer] + more > self._most - self.size - more:
            raise TooMuch
        self.size += more
        self._by_peer[peer] += more


class Share:
    def __init__(self, all_of_it: UnderWay, peer: str) -> None:
        self._all, self._peer = all_of_it, peer
        self.size = 0

    def grow(self, size: int) -> None:
        """The answer has so many bytes by now. Raises `TooMuch`."""
        more = size - FREE - self.size
        if more > 0:
            self._all.add(self._peer, more)
            self.size += more
