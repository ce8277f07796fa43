"""How much do the logs of each owner take together, and which of them go first? Pure, and kept in memory.

Those of ended jobs go, the oldest first, and only for a log of the same owner. What runs keeps its log; where nothing
is left to go it prints into the void, and its log says so.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

from hansa.identity import ADMIN_UID
from hansa.kernel import quantities
from hansa.resources import NO_LIMIT

_BLOCK = 4096  # a small log takes as much of a disk
_FEW = 32  # that are gone and still remembered


@dataclass(slots=True)
class _Owner:
    taken: int = 0
    ended: list[tuple[float, str]] = field(default_factory=list)  # a heap; some may be gone
    alive: int = 0  # of those, how many are not


@dataclass(slots=True)
class _Log:
    owner: str
    size: int
    ended: float | None = None


class LogShares:
    def __init__(self, most: int = NO_LIMIT) -> None:
        """`most` is how many bytes the logs of one owner may take; the admin's may take any."""
        self._most = most
        self._logs: dict[str, _Log] = {}
        self._owners: dict[str, _Owner] = {}

    def knows(self, name: str) -> bool:
        return name in self._logs

    def of(self, owner: str) -> int:
        """Bytes that their logs take, in whole blocks."""
        return self._owners[owner].taken if owner in self._owners else 0

    def left(self, owner: str) -> int:
        return max(0, self._limit(owner) - self.of(owner))

    def _limit(self, owner: str) -> int:
        return NO_LIMIT if owner in ("", ADMIN_UID) else self._most

    def set(self, name: str, owner: str, size: int) -> None:
        """It is so large now, and its job runs."""
        self.forget(name)
        self._logs[name] = _Log(owner, size)
        self._owners.setdefault(owner, _Owner()).taken += _blocks(size)

    def grow(self, name: str, more: int) -> None:
        one = self._logs.get(name)
        if one is not None:
            self._owners[one.owner].taken += _blocks(one.size + more) - _blocks(one.size)
            one.size += more

    def end(self, name: str, at: float) -> None:
        """Its job ended: it may go when its owner needs the room."""
        one = self._logs.get(name)
        if one is not None and one.ended is None:
            one.ended = at
            owner = self._owners[one.owner]
            owner.alive += 1
            heapq.heappush(owner.ended, (at, name))

    def forget(self, name: str) -> None:
        one = self._logs.pop(name, None)
        if one is not None:
            owner = self._owners[one.owner]
            owner.taken -= _blocks(one.size)
            owner.alive -= one.ended is not None
            if len(owner.ended) > 2 * owner.alive + _FEW:
                owner.ended = [entry for entry in owner.ended if self._is_there(one.owner, *entry)]
                heapq.heapify(owner.ended)

    def make_room(self, owner: str, size: int) -> list[str]:
        """These logs have to go for so many bytes more, and count no more."""
        gone: list[str] = []
        while self.of(owner) + size > self._limit(owner) and (oldest := self._oldest(owner)):
            self.forget(oldest)
            gone.append(oldest)
        return gone

    def _oldest(self, owner: str) -> str:
        waiting = self._owners[owner].ended if owner in self._owners else []
        while waiting:
            at, name = heapq.heappop(waiting)
            if self._is_there(owner, at, name):
                return name
        return ""

    def _is_there(self, owner: str, at: float, name: str) -> bool:
        """The log of that end, not of an earlier run of the same name."""
        one = self._logs.get(name)
        return one is not None and (one.owner, one.ended) == (owner, at)

    def owners(self) -> list[str]:
        return list(self._owners)

    def recall(self, found: Iterable[tuple[str, str, float, int]]) -> None:
        """Logs of ended jobs that an earlier life of ours left: name, owner, end, size."""
        for name, owner, at, size in found:
            if name not in self._logs:
                self.set(name, owner, size)
                self.end(name, at)

    def dropped(self) -> str:
        """What stands in the place of a log that had to go."""
        return f"hansa: this log was dropped for newer ones: the logs of one owner may take {self._shown}"

    def cut(self, lost: int) -> str:
        """What stands at the end of a log for which there was no room."""
        return f"hansa: {lost} bytes dropped: the logs of one owner may take {self._shown}"

    @property
    def _shown(self) -> str:
        return f"{quantities.show_size(self._most)} (jobs.logs_per_owner)"


def _blocks(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK
