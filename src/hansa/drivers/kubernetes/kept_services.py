"""How does a service stay in step in two places, the manager's database and Kubernetes? The `Services` port.

The database is the truth while it has a service; Kubernetes is what is left when it is lost. A new service is written
to both or to neither. A change is durable in the database and brought to Kubernetes when that answers. A service is
taken away from Kubernetes first: whatever dies in between, what was deleted does not come back.
"""

import asyncio
from collections.abc import Mapping, Sequence
from weakref import WeakValueDictionary

import structlog

from hansa import services
from hansa.drivers.kubernetes.service_drift import Drift, DriftBook
from hansa.drivers.kubernetes.service_maps import Found, ServiceMaps
from hansa.kernel import errors
from hansa.kernel.clock import Clock

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_START = 60.0  # seconds in which Kubernetes may begin to answer
_SWEEP = 300.0  # seconds after which all is looked at, also what nobody told of

_log = structlog.get_logger("hansa.kubernetes")


class KeptServices:
    """`load` once the database's services are loaded, `work` for as long as the manager runs."""

    def __init__(
        self, inner: services.Services, maps: ServiceMaps, clock: Clock, book: DriftBook | None = None
    ) -> None:
        self._inner = inner
        self._maps = maps
        self._book = book or DriftBook(clock)
        self._owed: set[str] = set()  # what Kubernetes did not take yet
        self._strays: dict[str, services.Record] = {}  # creates taken back, of which it may have got something
        self._seen: set[str] = set()  # as it should be, at least once since we started
        self._away = False
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def get(self, name: str) -> services.Record | None:
        return self._inner.get(name)

    def all(self) -> Sequence[services.Record]:
        return self._inner.all()

    def secrets(self, name: str) -> Mapping[str, str]:
        return self._inner.secrets(name)

    def drift(self) -> list[Drift]:
        """What others did to what we keep, the latest last."""
        return self._book.all()

    async def add(self, record: services.Record, secrets: Mapping[str, str]) -> None:
        """Raises `Temporary` if Kubernetes does not answer, and what it says if it refuses: nothing is kept then."""
        name = record.service.name
        self._maps.check(record, secrets)
        async with self._turn(name):
            await self._inner.add(record, secrets)
            try:
                await self._maps.keep(record, secrets, whole=True)
            except BaseException:
                self._strays[name] = record
                self._maps.wake(name)
                await self._inner.remove(name)
                raise
            self._strays.pop(name, None)

    async def replace(
        self, record: services.Record, secrets: Mapping[str, str], expected_version: int, *, commits: str = ""
    ) -> services.Record:
        """Durable when it returns, also while Kubernetes is away."""
        name = record.service.name
        self._maps.check(record, secrets)
        async with self._turn(name):
            fresh = await self._inner.replace(record, secrets, expected_version, commits=commits)
            self._owed.add(name)
            try:
                if not self._away:  # nobody waits in vain more than once
                    await self._maps.keep(fresh, secrets)
                    self._owed.discard(name)
            except errors.HansaError as error:
                self._away = isinstance(error, errors.Temporary)
                _log.warning("a change is brought to Kubernetes later", service=name, error=error.message)
            finally:
                if name in self._owed:
                    self._maps.wake(name)
        return fresh

    async def remove(self, name: str) -> None:
        """Raises `Temporary` if Kubernetes does not answer; the service is as it was then."""
        async with self._turn(name):
            record = self._inner.get(name)
            if record is not None:
                await self._maps.remove(record)
            await self._inner.remove(name)
            self._owed.discard(name)

    async def load(self) -> None:
        """Takes back what the database lost. Raises `Temporary` if Kubernetes does not answer for long."""
        loop = asyncio.get_running_loop()
        pause, end = _FIRST_PAUSE, loop.time() + _START
        while True:
            try:
                for found in await self._maps.found():
                    await self._take_back(found)
                return
            except errors.Temporary as error:
                if loop.time() + pause > end:
                    raise
                _log.warning("waiting to hear which services Kubernetes keeps", error=error.message)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def work(self) -> None:
        """Keeps Kubernetes in step, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._maps.follow(), name="follow what Kubernetes keeps of services")
            tasks.create_task(self._repair(), name="repair what Kubernetes keeps of services")

    async def _repair(self) -> None:
        await self._maps.synced()
        loop = asyncio.get_running_loop()
        told: set[str] = set()
        pause, sweep = _FIRST_PAUSE, loop.time()
        while True:
            if loop.time() >= sweep:
                told |= {record.service.name for record in self._inner.all()}
                sweep = loop.time() + _SWEEP
            failed = await self._look_at(told | self._owed | self._strays.keys())
            pause = min(pause * 2, _LONGEST_PAUSE) if failed else _FIRST_PAUSE
            told = failed | await self._maps.news(pause if failed else sweep - loop.time())

    async def _look_at(self, names: set[str]) -> set[str]:
        """Those that have to be looked at again."""
        failed: set[str] = set()
        for name in sorted(names):
            await asyncio.sleep(0)  # thousands of them, and others wait
            try:
                await self._look(name)
                self._away = False
            except errors.HansaError as error:
                failed.add(name)
                self._away = isinstance(error, errors.Temporary)
                if self._away:
                    return failed | names  # the others would only wait for the same answer
                self._book.note(name, error.message, repaired=False)
        return failed

    async def _look(self, name: str) -> None:
        async with self._turn(name):
            record = self._inner.get(name)
            if record is None:
                await self._clear(name)
                return
            if record.phase != "ready":  # whoever is at work on it writes it again
                return
            if self._maps.is_verified(record):
                self._owed.discard(name)
                return
            secrets = self._inner.secrets(name)
            difference = await self._maps.difference(record, secrets)
            if difference is not None:
                # We died, or it was away, between the two writes: nobody else's doing.
                ours = name in self._owed or (difference.behind and name not in self._seen)
                if not ours:
                    repaired = self._book.may_repair(name)
                    self._book.note(name, difference.what, repaired=repaired)
                    if not repaired:
                        return
                    self._owed.add(name)  # one repair, however often it has to be tried
                await self._maps.keep(record, secrets, whole=True)
                _log.info("brought to Kubernetes", service=name, what=difference.what)
            self._seen.add(name)
            self._owed.discard(name)

    async def _clear(self, name: str) -> None:
        self._owed.discard(name)
        self._seen.discard(name)
        if (stray := self._strays.get(name)) is not None:
            await self._maps.remove(stray)
            del self._strays[name]
        elif space := await self._maps.unknown(name):
            what = f"a ConfigMap in namespace {space} is of a service that the database does not have"
            self._book.note(name, what, repaired=False)

    async def _take_back(self, found: Found) -> None:
        async with self._turn(found.name):
            if self._inner.get(found.name) is not None:
                return
            if found.record is None:
                self._book.note(found.name, f"not taken back: {found.trouble}", repaired=False)
            elif found.record.phase != "ready":
                left = list(found.record.made_buckets)
                _log.warning(
                    "cleaned away", service=found.name, phase=found.record.phase, buckets_that_may_be_left=left
                )
                await self._maps.remove(found.record)
            else:
                await self._inner.add(found.record, found.secrets)
                _log.warning("taken back from Kubernetes: the database did not have it", service=found.name)

    def _turn(self, name: str) -> asyncio.Lock:
        """One at a time for each service."""
        return self._turns.setdefault(name, asyncio.Lock())
