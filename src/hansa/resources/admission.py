"""Who goes next when the cluster is full? A fair line in front of the ledger, for jobs, calls and services.

Three kinds of comers: calls wait in line (`wait_for`); the job dispatcher keeps its own queue and asks for
its next job (`try_hold`), which gives that one job a place in the line; services that stay for long
(`lasting`) ask and never stand in anybody's way. Small requests may overtake one that does not fit yet,
until that one has waited for `patience` seconds: then nothing younger is let in before it. Whoever is beyond the share
of its owner (`shares`) waits for that owner, and nobody waits for it. Where somebody else finds the room (Kubernetes,
for calls and services), `room=False` asks for the share alone. All in one event loop, no locks needed.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from hansa.resources.capacity import Ledger, Needs
from hansa.resources.shares import Shares


@dataclass(slots=True)
class _Place:
    """A place in the line; without `called` it belongs to the dispatcher, which comes back by itself."""

    needs: Needs
    since: float
    called: asyncio.Future[None] | None = None
    room: bool = True  # it needs room of the ledger, and not its owner's share alone


class Admission:
    """The ledger with a line in front of it."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        patience: float = 30.0,
        now: Callable[[], float] = time.monotonic,
        shares: Shares | None = None,
    ) -> None:
        self.ledger = ledger
        self.shares = shares or Shares()
        self._patience = patience
        self._now = now
        self._line: dict[str, _Place] = {}  # in order of arrival
        self._lasting: dict[str, Needs] = {}
        self._listeners: list[Callable[[], None]] = []
        self._givers: list[Callable[[str], None]] = []

    def try_hold(self, name: str, needs: Needs, *, lasting: bool = False, room: bool = True) -> bool:
        """True if it is held now (or was before). Refused, the oldest such name keeps a place in the line
        until it is held, released or withdrawn; `lasting` ones keep none, for their turn may never come."""
        beyond = not self.shares.counts(name) and self.lacks_share(needs)
        if beyond and name not in self._line:
            return False  # it waits for its own owner, and nobody waits for it
        if beyond or not self._hold(name, needs, room=room):
            if not lasting and name not in self._line and not self._dispatcher_waits() and self.comes_free(needs):
                self._line[name] = _Place(needs, self._now())
            return False
        self._line.pop(name, None)
        if lasting and room:
            self._lasting[name] = needs
        return True

    def _hold(self, name: str, needs: Needs, *, room: bool) -> bool:
        if self.shares.counts(name):
            return True
        if self.lacks_share(needs):
            return False
        if room and (self._blocked(name, needs) or not self.ledger.hold(name, needs)):
            return False
        return self.shares.take(name, needs)

    async def wait_for(self, name: str, needs: Needs, timeout: float, *, room: bool = True) -> bool:
        """Waits in line; True once it is held, False if the time is over first."""
        if self._hold(name, needs, room=room):
            return True
        called = asyncio.get_running_loop().create_future()
        self._line[name] = _Place(needs, self._now(), called, room)
        try:
            async with asyncio.timeout(max(timeout, 0)):
                await called
        except TimeoutError:
            return called.done() and not called.cancelled()  # called up in the very last moment
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():
                self.release(name)  # called up in the same moment: nobody would use it
            raise
        finally:
            self.withdraw(name)
        return True

    def hand_over(self, name: str, owner: str) -> bool:
        """What is held counts for another owner from now on; False if that one's share does not allow it."""
        if not self.shares.move(name, owner):
            return False
        self.look_again()
        return True

    def over_share(self, needs: Needs) -> str:
        """Why its owner may not have so much more now, or ""."""
        return self.shares.over(needs)

    def lacks_share(self, needs: Needs) -> bool:
        """Whether its owner may not have so much more now. Whoever keeps something for that owner that can be done
        without hears of it."""
        if not self.over_share(needs):
            return False
        if not self.shares.never(needs):
            for giver in list(self._givers):
                giver(needs.owner)
        return True

    def on_want(self, giver: Callable[[str], None]) -> None:
        """`giver` hears whose share is too small now; it gives back later what it can do without, and must be quick."""
        self._givers.append(giver)

    def release(self, name: str) -> None:
        """May be repeated; calls up who fits now."""
        self._lasting.pop(name, None)
        self._line.pop(name, None)
        self.ledger.release(name)
        self.shares.give_back(name)
        self.look_again()

    def keep(self, name: str, needs: Needs) -> None:
        """It holds no more than this from now on; calls up who fits."""
        self.ledger.keep(name, needs)
        if self.shares.counts(name):
            self.shares.note(name, needs)
        self.look_again()

    def resize(self, cpu: int, memory: int, largest: Needs | None = None) -> None:
        """The cluster has more now, or less. What is held stays held; nothing new starts before it fits."""
        self.ledger.cpu, self.ledger.memory, self.ledger.largest = cpu, memory, largest
        self.look_again()

    def look_again(self) -> None:
        """Something may fit that did not before."""
        self._call_up()
        for listener in list(self._listeners):
            listener()

    def withdraw(self, name: str) -> None:
        """Gives up a place in the line; what is held stays held."""
        if self._line.pop(name, None) is not None:
            self._call_up()

    def on_release(self, listener: Callable[[], None]) -> Callable[[], None]:
        """`listener` is called after every release, and must be quick. Call the answer to be told no more."""
        self._listeners.append(listener)

        def forget() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return forget

    def _dispatcher_waits(self) -> bool:
        return any(place.called is None for place in self._line.values())

    def _blocked(self, name: str, needs: Needs) -> bool:
        """Does somebody older, who has waited long enough, come first?"""
        for other, place in self._line.items():
            if other == name:
                return False
            if self._insists(place) and not self._fits_beside(place.needs, needs):
                return True
        return False

    def _insists(self, place: _Place) -> bool:
        within = place.room and self.comes_free(place.needs) and not self.shares.over(place.needs)
        return within and self._now() - place.since >= self._patience

    def comes_free(self, needs: Needs) -> bool:
        """Whether so much is free once all that runs has ended: whoever waits for what stays for long, or for what
        others wrote to the disk, would block everybody for good, and may not."""
        reachable = Needs(
            self.ledger.cpu - sum(one.cpu for one in self._lasting.values()),
            self.ledger.memory - sum(one.memory for one in self._lasting.values()),
            self.ledger.disk() - sum(one.disk for one in self._lasting.values()),
        )
        return needs.fits_into(reachable)

    def _fits_beside(self, first: Needs, second: Needs) -> bool:
        return first.plus(second).fits_into(self.ledger.free)

    def _call_up(self) -> None:
        for name, place in list(self._line.items()):
            if place.called is None:
                if self._insists(place):
                    return  # its turn: what is free stays free until the dispatcher comes
                continue
            if place.called.done() or self.shares.over(place.needs):
                continue
            if not place.room or self.ledger.hold(name, place.needs):
                self.shares.take(name, place.needs)
                place.called.set_result(None)
                del self._line[name]
            elif self._insists(place):
                return
