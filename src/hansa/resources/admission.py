"""Who goes next when the cluster is full? A fair line in front of the ledger, for jobs, calls and services.

Three kinds of comers: calls wait in line (`wait_for`); the job dispatcher keeps its own queue and asks for
its next job (`try_hold`), which gives that one job a place in the line; services that stay for long
(`lasting`) ask and never stand in anybody's way. Small requests may overtake one that does not fit yet,
until that one has waited for `patience` seconds: then nothing younger is let in before it. All in one event
loop, no locks needed.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from hansa.resources.capacity import Ledger, Needs


@dataclass(slots=True)
class _Place:
    """A place in the line; without `called` it belongs to the dispatcher, which comes back by itself."""

    needs: Needs
    since: float
    called: asyncio.Future[None] | None = None


class Admission:
    """The ledger with a line in front of it."""

    def __init__(self, ledger: Ledger, *, patience: float = 30.0, now: Callable[[], float] = time.monotonic) -> None:
        self.ledger = ledger
        self._patience = patience
        self._now = now
        self._line: dict[str, _Place] = {}  # in order of arrival
        self._lasting: dict[str, Needs] = {}
        self._listeners: list[Callable[[], None]] = []

    def try_hold(self, name: str, needs: Needs, *, lasting: bool = False) -> bool:
        """True if it is held now (or was before). Refused, the oldest such name keeps a place in the line
        until it is held, released or withdrawn; `lasting` ones keep none, for their turn may never come."""
        if self._blocked(name, needs) or not self.ledger.hold(name, needs):
            if not lasting and name not in self._line and not self._dispatcher_waits():
                self._line[name] = _Place(needs, self._now())
            return False
        self._line.pop(name, None)
        if lasting:
            self._lasting[name] = needs
        return True

    async def wait_for(self, name: str, needs: Needs, timeout: float) -> bool:
        """Waits in line; True once it is held, False if the time is over first."""
        if not self._blocked(name, needs) and self.ledger.hold(name, needs):
            return True
        called = asyncio.get_running_loop().create_future()
        self._line[name] = _Place(needs, self._now(), called)
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

    def release(self, name: str) -> None:
        """May be repeated; calls up who fits now."""
        self._lasting.pop(name, None)
        self._line.pop(name, None)
        self.ledger.release(name)
        self._call_up()
        for listener in list(self._listeners):
            listener()

    def resize(self, cpu: int, memory: int, largest: Needs | None = None) -> None:
        """The cluster has more now, or less. What is held stays held; nothing new starts before it fits."""
        self.ledger.cpu, self.ledger.memory, self.ledger.largest = cpu, memory, largest
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
        """Whoever only waits for what stays for long would block everybody for good, and may not."""
        reachable = Needs(
            self.ledger.cpu - sum(needs.cpu for needs in self._lasting.values()),
            self.ledger.memory - sum(needs.memory for needs in self._lasting.values()),
        )
        within = place.needs.cpu <= reachable.cpu and place.needs.memory <= reachable.memory
        return within and self._now() - place.since >= self._patience

    def _fits_beside(self, first: Needs, second: Needs) -> bool:
        free = self.ledger.free
        return first.cpu + second.cpu <= free.cpu and first.memory + second.memory <= free.memory

    def _call_up(self) -> None:
        for name, place in list(self._line.items()):
            if place.called is None:
                if self._insists(place):
                    return  # its turn: what is free stays free until the dispatcher comes
                continue
            if place.called.done():
                continue
            if self.ledger.hold(name, place.needs):
                place.called.set_result(None)
                del self._line[name]
            elif self._insists(place):
                return
