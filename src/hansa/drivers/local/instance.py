"""How does one instance of an exposed service live? Started, heard, asked for its health, ended.

`replicas.py` starts the next one when this one is gone.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from socket import socket

from hansa import services
from hansa.drivers.local import endings, health
from hansa.drivers.local.engine import Engine
from hansa.drivers.local.job_logs import LineCutter
from hansa.drivers.local.launch import Exit
from hansa.drivers.local.runtime import Process, follow, put_down
from hansa.kernel import errors

_KEPT_LINES = 1000
_LONGEST_LINE = 8 * 1024
_MOST_PRINTED = 2**20  # bytes a second of one instance, of which a few lines are kept


@dataclass(frozen=True, slots=True)
class Pace:
    """How quickly and how patiently exposed services are looked after, in seconds."""

    check_starting: float = 0.2
    check_every: float = 2.0
    check_within: float = 2.0
    start_within: float = 300.0
    """Not healthy by then, an instance is started anew."""
    misses: int = 3
    """Checks in a row that must fail before it gets no more calls; five times as many, and it starts anew."""
    first_pause: float = 0.5
    longest_pause: float = 60.0
    steady: float = 60.0
    """Healthy for so long, an instance's earlier failures are forgotten."""
    drain: float = 1.0
    """What a version that was replaced gets to end the calls under way."""
    handover: float = 60.0
    """How long the old version is kept while the new one does not become healthy."""
    grace: float = 10.0
    """Between the request to end and the kill."""


class RecentLines:
    """The last lines that all instances of a service printed."""

    def __init__(self) -> None:
        self._lines: deque[tuple[float, bytes]] = deque(maxlen=_KEPT_LINES)

    def add(self, lines: list[bytes]) -> None:
        """Little is done with each: most of them nobody will ever ask for."""
        now = time.time()
        self._lines.extend((now, line[:_LONGEST_LINE]) for line in lines)

    def say(self, text: str) -> None:
        self.add([f"hansa: {text}".encode()])

    def last(self, count: int) -> tuple[services.LogLine, ...]:
        lines = tuple(self._lines)[-count:] if count > 0 else ()
        return tuple(services.LogLine(at, line.decode(errors="replace")) for at, line in lines)


class Instance:
    """One process of a service, from its start to its end."""

    def __init__(self, engine: Engine, order: services.RunOrder, id: str, lines: RecentLines, pace: Pace) -> None:
        self.id = id
        self.healthy_since: float | None = None  # of the loop's clock
        self.steady = False  # it was healthy for long
        self._engine = engine
        self._order = order
        self._lines = lines
        self._pace = pace
        self._workdir = engine.workdir(id, shelf="exposed")
        self._process: Process | None = None

    async def live(self, changed: Callable[[], None]) -> str:
        """Until it ends; why. Cancelled, it is asked to end and then made to."""
        try:
            return await self._live(changed)
        except (errors.HansaError, OSError) as error:
            return f"it could not be started: {error}"
        finally:
            self._unhealthy(changed)
            await asyncio.to_thread(self._workdir.remove)

    async def dial(self) -> socket:
        if self._process is None:
            raise errors.Temporary(f"{self._order.service.name} is not started yet")
        return await self._process.dial(self._order.service.expose.port, self._pace.check_within)

    async def _live(self, changed: Callable[[], None]) -> str:
        await self._engine.prepare(self._order, self._workdir, {})
        own_program = self._order.service.expose.default_command and self._engine.runtime.images
        argv = () if own_program else ("/bin/sh", self._engine.places(self._workdir).script)
        launch = self._engine.launch(self._order, self._workdir, id=self.id, argv=argv, network="own")
        process = self._process = await self._engine.start(launch, self._order, self._workdir)
        hearing = asyncio.create_task(self._hear(process), name=f"hear {self.id}")
        checking = asyncio.create_task(self._check(changed), name=f"check {self.id}")
        try:
            await asyncio.wait({hearing, checking}, return_when=asyncio.FIRST_COMPLETED)
            if hearing.done():
                exit = hearing.result()
                return endings.in_words(exit, launch, full=self._workdir.is_full) or "it ended by itself"
            return checking.result()
        finally:
            checking.cancel()
            self._unhealthy(changed)
            await self._end(process, hearing)

    async def _hear(self, process: Process) -> Exit:
        cutter = LineCutter(_LONGEST_LINE, most=_KEPT_LINES)  # its own: half lines of two instances do not mix
        try:
            return await follow(process, lambda data: self._lines.add(cutter.feed(data)), most=_MOST_PRINTED)
        finally:
            self._lines.add(cutter.finish())

    async def _end(self, process: Process, hearing: asyncio.Task[Exit]) -> None:
        if not hearing.done():
            await process.stop(self._pace.grace)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pace.grace + 5):
                    await process.wait()
        await put_down(process)
        await asyncio.wait([hearing], timeout=1)
        hearing.cancel()

    async def _check(self, changed: Callable[[], None]) -> str:
        """Returns only when the instance had better be started anew."""
        loop = asyncio.get_running_loop()
        started, misses = loop.time(), 0
        path = self._order.service.expose.health_path
        while True:
            problem = await health.trouble(self.dial, path, self._pace.check_within)
            misses = misses + 1 if problem else 0
            if not problem and self.healthy_since is None:
                self.healthy_since = loop.time()
                changed()
            elif misses >= self._pace.misses:
                self._unhealthy(changed)
            if self.healthy_since is not None:
                self.steady = self.steady or loop.time() - self.healthy_since >= self._pace.steady
            late = loop.time() - started > self._pace.start_within
            if self.healthy_since is None and late and misses >= 5 * self._pace.misses:
                return f"it is not healthy: {problem}"
            starting = self.healthy_since is None and not late
            await asyncio.sleep(self._pace.check_starting if starting else self._pace.check_every)

    def _unhealthy(self, changed: Callable[[], None]) -> None:
        if self.healthy_since is not None:
            self.healthy_since = None
            changed()
