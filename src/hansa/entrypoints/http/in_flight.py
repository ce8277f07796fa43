"""How much of what people send may be in memory at once? All bodies under way together, and none of one sender's that
would leave the others less than that sender has.

So one who sends all they can gets half of it, two get a third each, and there is always as much left for whoever comes
next. What a connection holds before anybody looks at it is free: short bodies are never refused. A body counts until
its request is answered.
"""

from collections import Counter

from starlette.types import Scope

from hansa.kernel import quantities
from hansa.kernel.errors import Kind, Temporary

FREE = 64 * 1024  # bytes of each body; the server takes in as many by itself
_LARGEST_ONES = 4  # of those there is room for so many, whatever the settings say: or one alone had none
_CLAIM = "hansa.claim"  # in the scope
_A_MOMENT = 2.0  # seconds


class ManagerCrowded(Temporary):
    """Too much is being sent to this manager at the same time."""

    code = "request.crowded"


class TooMuchAtOnce(Temporary):
    """One sender has too much under way at the same time."""

    code, kind = "request.too-much-at-once", Kind.TOO_MANY


class InFlight:
    """The bodies of one process: `most` bytes, or more if a single one may be large."""

    def __init__(self, most: int, largest: int = 0) -> None:
        self.most = max(most, _LARGEST_ONES * largest)
        self.size = 0
        self._by_sender: Counter[str] = Counter()

    def held_by(self, sender: str) -> int:
        return self._by_sender[sender]

    def check(self, sender: str, more: int) -> None:
        """Raises if so much more of this sender's has no room now."""
        left, held = self.most - self.size - more, self._by_sender[sender] + more
        if left < 0 or (held > left and held == more):
            raise ManagerCrowded(
                "too much is being sent to this manager just now", hint="try again in a moment", retry_after=_A_MOMENT
            )
        if held > left:
            show = quantities.show_size
            raise TooMuchAtOnce(
                f"you are sending {show(held)} at the same time, and {show(left)} would be left for others",
                hint="send fewer at a time, or upload large inputs to a bucket",
                retry_after=_A_MOMENT,
            )

    def add(self, sender: str, more: int) -> None:
        self.check(sender, more)
        self.size += more
        self._by_sender[sender] += more

    def give_back(self, sender: str, size: int) -> None:
        self.size -= size
        self._by_sender[sender] -= size
        if self._by_sender[sender] <= 0:
            del self._by_sender[sender]  # whoever is gone takes no memory


class Claim:
    """What one request holds of it."""

    __slots__ = ("_bodies", "_counted", "_sender", "_size")

    def __init__(self, bodies: InFlight) -> None:
        self._bodies = bodies
        self._sender = ""
        self._size = self._counted = 0

    def begin(self, sender: str, told: int) -> None:
        """Raises at once if a body of the length that was told has no room."""
        self._sender = sender
        if told > FREE:
            self._bodies.check(sender, told - FREE)

    def more(self, size: int) -> None:
        self._size += size
        fresh = self._size - FREE - self._counted
        if fresh > 0:
            self._bodies.add(self._sender, fresh)
            self._counted += fresh

    def close(self) -> None:
        if self._counted:
            self._bodies.give_back(self._sender, self._counted)
            self._counted = 0


def make_claim(scope: Scope, bodies: InFlight) -> Claim:
    """For whoever lets a request in, and closes the claim when it is answered."""
    claim = Claim(bodies)
    scope[_CLAIM] = claim
    return claim


def claim_of(scope: Scope) -> Claim:
    claim: Claim = scope[_CLAIM]
    return claim
