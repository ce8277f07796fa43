"""When is the hub called next? Regularly while it answers; later and later, at random, while it does not. Pure.

The longest pause is two heartbeats, so that a hub that comes back knows all its clusters again at once, and the
chance in it keeps thousands of managers from coming in the same moment.
"""

import random

_FIRST, _LONGEST = 0.25, 2.0  # in heartbeats
_AT_ONCE, _GAP = 10, 1.0  # answers without a pause, then seconds for each
_REMOVED = 60.0  # seconds: whom the hub has removed asks seldom whether that was a mistake


class Pace:
    def __init__(self, every: float, chance: random.Random | None = None) -> None:
        self.every = every
        self._chance = chance or random.SystemRandom()
        self._failures = 0
        self._free = float("-inf")  # up to when the answers so far have used up their time

    @property
    def failing(self) -> bool:
        return self._failures > 0

    def answered(self) -> None:
        self._failures = 0

    def failed(self) -> float:
        """Seconds until the next try."""
        longest = min(_LONGEST, _FIRST * float(2**self._failures)) * self.every
        self._failures = min(self._failures + 1, 16)
        return longest * (0.5 + 0.5 * self._chance.random())

    def pause(self, now: float) -> float:
        """Seconds until an answer that came now may be followed by another. Some may come at once; a hub that answers
        without end is asked no more than once a second."""
        self._free = max(self._free, now - _AT_ONCE * _GAP) + _GAP
        return max(0.0, self._free - now)

    def removed(self) -> float:
        return max(_REMOVED, self.every) * (0.5 + self._chance.random())
