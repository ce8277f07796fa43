"""How many jobs of each owner are open (accepted and not ended), and how large are the bodies kept for them?

One owner must not fill the queue and the disk of all. A job counts from before it is written down until it has ended,
wherever it is meanwhile: waiting, running, on offer, or away at a member. Kept in memory, for every submission asks;
`settle` brings it in step with the database at the start and now and then, so that an answer of the database that got
lost cannot be counted for ever.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from hansa.identity import ADMIN_UID
from hansa.kernel import quantities
from hansa.services.errors import OwnerQueueFull

_ROOM_AGAIN = 0.9  # of a limit: who was refused is told of room once there is more than a little


@dataclass(frozen=True, slots=True)
class Share:
    """What one owner's open jobs may come to."""

    jobs: int
    size: int  # of their bodies, in bytes


@dataclass(frozen=True, slots=True)
class Held:
    """What one owner's open jobs come to."""

    jobs: int = 0
    size: int = 0

    def plus(self, jobs: int, size: int) -> "Held":
        return Held(self.jobs + jobs, self.size + size)


def refusal(held: Held, size: int, most: Share) -> str:
    """Why one more job is too much, or "". A first one is always taken, however small the share."""
    if held.jobs == 0:
        return ""
    if held.jobs >= most.jobs:
        return f"{held.jobs} jobs of yours have not ended yet, and {most.jobs} may be open at once"
    if held.size + size > most.size:
        kept, limit = quantities.show_size(held.size), quantities.show_size(most.size)
        return f"the inputs of your open jobs take {kept}, and {limit} may be kept"
    return ""


@dataclass(slots=True)
class Backlog:
    on_room: Callable[[], None] = lambda: None  # somebody who was refused has room again
    _open: dict[str, tuple[str, int]] = field(default_factory=dict)  # owner and size, by the job's name
    _held: dict[str, Held] = field(default_factory=dict)  # by owner
    _under_way: set[str] = field(default_factory=set)  # being written down just now
    _refused: dict[str, Share] = field(default_factory=dict)

    @property
    def under_way(self) -> int:
        return len(self._under_way)

    def held(self, owner: str) -> Held:
        return self._held.get(owner, Held())

    def is_open(self, name: str) -> bool:
        return name in self._open

    @contextmanager
    def entering(self, name: str, owner: str, size: int, most: Share) -> Iterator[None]:
        """Counted before it is written down: of many that come at once none is let in on an old count. Whoever finds
        that the job was there before calls `leave`; after a failure nobody knows, and `settle` finds out."""
        if name in self._open:
            yield  # the same job once more
            return
        if owner != ADMIN_UID and (why := refusal(self.held(owner), size, most)):
            self._refused[owner] = most
            raise OwnerQueueFull(
                why, hint="wait until some have ended, or delete jobs you do not need (`hansa job rm`)", retry_after=10
            )
        self.add(name, owner, size)
        self._under_way.add(name)
        try:
            yield
        finally:
            self._under_way.discard(name)

    def add(self, name: str, owner: str, size: int) -> None:
        if name not in self._open:
            self._open[name] = (owner, size)
            self._held[owner] = self.held(owner).plus(1, size)

    def leave(self, name: str) -> None:
        """It has ended, or is gone; harmless to repeat."""
        owner, size = self._open.pop(name, ("", 0))
        if not owner:
            return
        self._held[owner] = left = self._held[owner].plus(-1, -size)
        if not left.jobs:
            del self._held[owner]
        most = self._refused.get(owner)
        if most and left.jobs <= most.jobs * _ROOM_AGAIN and left.size <= most.size * _ROOM_AGAIN:
            del self._refused[owner]
            self.on_room()

    async def settle(self, read: Callable[[], Awaitable[Mapping[str, tuple[str, int]]]]) -> None:
        """`read` gives owner and size of every open job in the database."""
        before = self._open.keys() - self._under_way
        found = await read()
        for name in before - found.keys():
            self.leave(name)
        for name, (owner, size) in found.items():
            self.add(name, owner, size)
