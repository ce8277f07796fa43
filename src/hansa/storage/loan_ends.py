"""Do keys of a run end for certain? What a store that is away could not end is owed to it until it is done.

Debts are written down, so that a manager that is started anew pays them, too. So is the one of a start itself: ending
what a former life had lent.
"""

import asyncio
import contextlib

import structlog

from hansa.kernel.clock import Clock
from hansa.kernel.errors import Forbidden, HansaError, Temporary
from hansa.storage.ports import Keys, LoanEnds, Loans
from hansa.storage.reach import Reach
from hansa.storage.turns import Turns

_log = structlog.get_logger("hansa.storage")
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0  # seconds


class SureLoans:
    """The `Loans` port, on top of a store's own: `end` never fails, and is repeated until it succeeded."""

    def __init__(self, inner: Loans, memory: LoanEnds, clock: Clock, first_pause: float = _FIRST_PAUSE) -> None:
        self._inner = inner
        self._memory = memory
        self._clock = clock
        self._first_pause = first_pause
        self._turns = Turns()
        self._sweeping = asyncio.Lock()
        self._lent: dict[str, Reach] = {}  # by this life of the manager, or taken over from a former one, and not ended
        self._owed: dict[str, bool] = {}  # names, and whether they are written down
        self._spared: frozenset[str] | None = None  # all but these, and what was lent since, are owed as well
        self._wake = asyncio.Event()

    @property
    def owed(self) -> frozenset[str]:
        """Whose keys should have ended and have not."""
        return frozenset(self._owed)

    async def load(self) -> None:
        """What a former life owed."""
        self._owed |= dict.fromkeys(await self._memory.all(), True)
        self._wake.set()

    def new_name(self) -> str:
        return self._inner.new_name()

    async def lend(self, name: str, reach: Reach) -> Keys:
        async with self._sweeping:
            self._lent[name] = reach
        async with self._turns.hold([name]):
            await self._forget(name)  # it is wanted again, and must not end later by an old debt
            keys = await self._inner.lend(name, reach)
        try:
            # asked after the loan was noted: who loses the right from now on is found by `shut_out`
            reach.require_rights()
        except HansaError:
            await self.end(name)
            raise
        return keys

    async def end(self, name: str) -> None:
        """Ended when it returns, if the store can be reached; else as soon as it can."""
        self._lent.pop(name, None)
        try:
            async with self._turns.hold([name]):
                await self._end(name)
        except asyncio.CancelledError:  # also while it waited for its turn
            self._owed.setdefault(name, False)
            self._wake.set()
            raise

    async def _end(self, name: str) -> None:
        try:
            await self._inner.end(name)
        except HansaError as error:
            _log.warning("keys of a run could not be ended yet; trying again", loan=name, error=error.message)
            await self._owe(name)
        else:
            with contextlib.suppress(Temporary):  # then it is ended once more
                await self._forget(name)

    def take_over(self, name: str, reach: Reach) -> None:
        """A former life lent it, and its run goes on."""
        self._lent.setdefault(name, reach)

    async def shut(self, bucket: str) -> None:
        """No keys of a run open this bucket when it returns, or as soon as the store can be reached. For a bucket that
        goes: its name may be somebody else's next."""
        for name in [name for name, reach in self._lent.items() if reach.touches(bucket)]:
            await self.end(name)

    async def shut_out(self, bucket: str) -> None:
        """As `shut`, but runs whose people may use the bucket keep their keys. For one that is shared with fewer."""
        for name in [name for name, reach in self._lent.items() if reach.touches(bucket) and not _holds(reach)]:
            await self.end(name)

    async def end_others(self, alive: frozenset[str]) -> int:
        async with self._sweeping:
            try:
                count = await self._inner.end_others(alive | self._lent.keys())
            except HansaError as error:
                _log.warning("keys of former runs could not be ended yet; trying again", error=error.message)
                self._spared = alive
                self._wake.set()
                return 0
            self._spared = None
            return count

    async def close(self) -> None:
        await self._inner.close()

    async def work(self) -> None:
        """Pays what is owed, until cancelled."""
        pause = self._first_pause
        while True:
            if not self._is_in_debt:
                await self._wake.wait()
            self._wake.clear()
            await self.settle()
            pause = min(2 * pause, _LONGEST_PAUSE) if self._is_in_debt else self._first_pause
            await asyncio.sleep(pause)

    async def settle(self) -> None:
        """One try."""
        for name in list(self._owed):
            try:
                await self._pay(name)
            except Temporary:
                return  # it is away for the others, too
            except HansaError as error:
                _log.warning("keys of a run could not be ended", loan=name, error=error.message)
        if self._spared is not None:
            await self.end_others(self._spared)

    @property
    def _is_in_debt(self) -> bool:
        return bool(self._owed) or self._spared is not None

    async def _pay(self, name: str) -> None:
        async with self._turns.hold([name]):
            if name not in self._owed:
                return  # lent again meanwhile, or ended
            if not self._owed[name]:
                await self._memory.add(name, self._clock.now())
                self._owed[name] = True
            await self._inner.end(name)
            await self._forget(name)

    async def _owe(self, name: str) -> None:
        self._owed.setdefault(name, False)
        self._wake.set()
        try:
            await self._memory.add(name, self._clock.now())
            self._owed[name] = True
        except Temporary as error:  # written down with the next try
            _log.warning("a debt could not be written down", loan=name, error=error.message)

    async def _forget(self, name: str) -> None:
        if name in self._owed:
            await self._memory.remove(name)
            self._owed.pop(name, None)


def _holds(reach: Reach) -> bool:
    try:
        reach.require_rights()
    except Forbidden:
        return False
    return True
