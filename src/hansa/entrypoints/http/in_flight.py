"""How much of what people send, and of what they are answered, may be in memory at once? All of it together is bounded,
and nobody may have so much under way that less than that is left for the others.

So one who sends all they can gets half of it, two get a third each, and there is always as much left for whoever comes
next. What a connection holds before anybody looks at it is free, for so many requests of one sender: short bodies are
refused to those alone who have many under way. A body counts until its request is answered, an answer until it is sent.
"""

from collections import Counter

from starlette.types import Scope

from hansa.kernel import quantities
from hansa.kernel.errors import Kind, Temporary

FREE = 64 * 1024  # bytes of each body; the server takes in as many by itself
MOST_FREE = 64  # bodies of one sender; of any more every byte counts
_LARGEST_ONES = 4  # of those there is room for so many, whatever the settings say: or one alone had none
_CLAIM = "hansa.claim"  # in the scope
_A_MOMENT = 2.0  # seconds


class ManagerCrowded(Temporary):
    """Too much is under way to and from this manager at the same time."""

    code = "request.crowded"


class TooMuchAtOnce(Temporary):
    """One sender has too much under way at the same time."""

    code, kind = "request.too-much-at-once", Kind.TOO_MANY


class InFlight:
    """What one process holds of bodies and answers: `most` bytes, or more if a single body may be large."""

    def __init__(self, most: int, largest: int = 0) -> None:
        self.most = max(most, _LARGEST_ONES * largest)
        self.size = 0
        self._by_sender: Counter[str] = Counter()
        self._free: Counter[str] = Counter()  # bodies of each sender whose first part is free

    def held_by(self, sender: str) -> int:
        return self._by_sender[sender]

    def check(self, sender: str, more: int) -> None:
        """Raises if so much more of this sender's has no room now."""
        left, held = self.most - self.size - more, self._by_sender[sender] + more
        if left < 0 or (held > left and held == more):
            raise _crowded()
        if held > left:
            raise _too_much(held, left)

    def free_one(self, sender: str) -> bool:
        """Whether the first part of one more body is free; if so, `end_free` follows."""
        if self._free[sender] >= MOST_FREE:
            return False
        self._free[sender] += 1
        return True

    def end_free(self, sender: str) -> None:
        _less(self._free, sender, 1)

    def add(self, sender: str, more: int) -> None:
        self.check(sender, more)
        self.size += more
        self._by_sender[sender] += more

    def add_answer(self, sender: str, size: int, own: int = 0) -> None:
        """An answer, however large, or more of one of which `own` bytes count already. Whoever has nothing else under
        way gets it while there is any room at all."""
        held, left = self._by_sender[sender] + size, self.most - self.size - size
        if held > own + size and held > left:
            raise _too_much(held, left)
        if self.size - own >= self.most:
            raise _crowded()
        self.size += size
        self._by_sender[sender] += size

    def give_back(self, sender: str, size: int) -> None:
        self.size -= size
        _less(self._by_sender, sender, size)


def _less(counts: "Counter[str]", sender: str, size: int) -> None:
    counts[sender] -= size
    if counts[sender] <= 0:
        del counts[sender]  # whoever is gone takes no memory


def _crowded() -> ManagerCrowded:
    text = "too much is under way to and from this manager just now"
    return ManagerCrowded(text, hint="try again in a moment", retry_after=_A_MOMENT)


def _too_much(held: int, left: int) -> TooMuchAtOnce:
    show = quantities.show_size
    return TooMuchAtOnce(
        f"you would have {show(held)} under way at the same time, and {show(max(0, left))} would be left for others",
        hint="send fewer at a time and read what is answered, or upload large inputs to a bucket",
        retry_after=_A_MOMENT,
    )


class Claim:
    """What one request holds of it."""

    __slots__ = ("_bodies", "_counted", "_counted_for", "_held", "_is_free", "_size", "sender")

    def __init__(self, bodies: InFlight) -> None:
        self._bodies = bodies
        self.sender = ""  # who asks, as soon as somebody knows
        self._counted_for = ""
        self._size = self._held = self._counted = 0
        self._is_free = False

    def begin(self, sender: str, told: int) -> None:
        """Raises at once if a body of the length that was told has no room."""
        self.sender = self._counted_for = sender
        self._is_free = self._bodies.free_one(sender)
        if told > self._free:
            self._bodies.check(sender, told - self._free)

    def more(self, size: int) -> None:
        self._size += size
        fresh = self._size - self._free - self._counted
        if fresh > 0:
            self._bodies.add(self._counted_for, fresh)
            self._counted += fresh

    def hold(self, size: int) -> None:
        """So much more of an answer is about to be in memory, while it is being made: counts like the answer itself.
        Raises if it has no room."""
        beyond = max(0, self._held + size - FREE) - max(0, self._held - FREE)
        self._held += size
        if beyond:
            self._bodies.add_answer(self._counted_for, beyond, self._counted)
            self._counted += beyond

    def answer(self, sender: str, size: int) -> None:
        """From now on the answer counts, not the body any more. Raises if it has no room."""
        self.close()
        if size > FREE:
            self._bodies.add_answer(sender, size)
            self._counted_for, self._counted = sender, size

    def close(self) -> None:
        if self._is_free:
            self._bodies.end_free(self._counted_for)
            self._is_free = False
        if self._counted:
            self._bodies.give_back(self._counted_for, self._counted)
            self._counted = 0

    @property
    def _free(self) -> int:
        return FREE if self._is_free else 0


def make_claim(scope: Scope, bodies: InFlight) -> Claim:
    """For whoever lets a request in, and closes the claim when it is answered."""
    claim = Claim(bodies)
    scope[_CLAIM] = claim
    return claim


def claim_of(scope: Scope) -> Claim:
    claim: Claim = scope[_CLAIM]
    return claim
