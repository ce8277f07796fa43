"""When is a bucket counted again? Pure. `Fullness` asks, at the store's news and every few seconds.

Counting a large bucket takes many seconds of this process. So a count is kept, together with all that came since it
began, and made again only where the truth may be on the other side of the limit."""

from dataclasses import dataclass, replace

from hansa.storage.contents import Contents

_LONGEST_REST = 60.0  # seconds
_LONGEST_UNSWEPT = 600.0


@dataclass(frozen=True, slots=True)
class Came:
    """What the store told since the last count began. Never too little: what was overwritten is in it twice."""

    written: int = 0  # bytes
    added: int = 0  # objects

    def plus(self, written: int, added: int) -> "Came":
        return Came(self.written + written, self.added + added)

    def onto(self, contents: Contents) -> Contents:
        return replace(contents, size=contents.size + self.written, objects=contents.objects + self.added)


@dataclass(frozen=True, slots=True)
class Counted:
    contents: Contents | None  # None: the store did not answer, or was not told what follows
    ended: float  # seconds of a clock that only goes forward
    took: float  # seconds

    def rested(self, full: bool) -> float:
        """When the bucket may be counted again. A full one takes nothing, so only its owner waits; to an open
        one people write meanwhile, unnoticed."""
        return self.ended + min((4 if full else 1) * self.took, _LONGEST_REST)

    def stale(self, now: float) -> bool:
        """Whether a sweep counts it although the store told nothing that asks for it: at most a twentieth of the time
        is spent on one bucket."""
        return now - self.ended >= min(20 * self.took, _LONGEST_UNSWEPT)


def doubtful(contents: Contents | None, came: Came, limit: int, full: bool) -> bool:
    """Whether the bucket may be closed though it has room, or open though it has none."""
    if contents is None:
        return True
    return not contents.fills(limit) if full else came.onto(contents).fills(limit)
