"""What is a worker of a synchronous service? A sandbox that stands ready and answers one call, then is thrown away.

`sync_host.py` keeps some of them warm. Everything is set up but the call itself: its input and variables are
written into the worker's folder, and the script is let go.
"""

import asyncio
import secrets

from hansa import services
from hansa.drivers.local import endings
from hansa.drivers.local.engine import Engine
from hansa.drivers.local.launch import Exit, Launch
from hansa.drivers.local.runtime import Process, follow, put_down
from hansa.drivers.local.workdir import Workdir
from hansa.drivers.runs import reply
from hansa.kernel import errors


class Worker:
    """One held sandbox."""

    def __init__(self, engine: Engine, order: services.RunOrder, id: str) -> None:
        self.id = id
        self.order = order
        self._engine = engine
        self._workdir: Workdir = engine.workdir(id, shelf="run")
        self._launch: Launch = engine.launch(order, self._workdir, id=id, hold=True)
        self._process: Process | None = None

    @staticmethod
    def new_id(service: str) -> str:
        return f"{service}-run-{secrets.token_hex(6)}"

    async def start(self) -> None:
        await self._engine.prepare(self.order, self._workdir, {})
        self._process = await self._engine.start(self._launch, self.order, self._workdir)

    async def ended(self) -> Exit:
        """Returns when its process is gone, called or not."""
        assert self._process is not None
        return await self._process.wait()

    async def answer(self, order: services.RunOrder, seconds: float) -> services.Reply:
        """The one call it was made for. Cancelled, or when the time is over, the script is ended; so it is if there is
        no room for its answer."""
        scales = reply.Scales(order.weigh)
        printed = _Head(reply.LARGEST, scales)
        try:
            async with asyncio.timeout(seconds):
                return await self._answer(order, printed, scales)
        except TimeoutError:
            return services.Reply(printed.text, None, f"time limit of {order.seconds:g} s reached")
        except (errors.HansaError, OSError) as error:
            if error is scales.refused:
                raise
            return services.Reply(printed.text, None, str(error))

    async def discard(self) -> None:
        """Nothing of it is left; may be repeated."""
        if self._process is not None:
            await put_down(self._process)
        await asyncio.to_thread(self._workdir.remove)

    async def _answer(self, order: services.RunOrder, printed: "_Head", scales: reply.Scales) -> services.Reply:
        assert self._process is not None
        staging = self._engine.staging(order, self._workdir, _unheard)
        await self._engine.lay_out(order, self._workdir)
        await staging.bring()
        await self._process.release()
        exit = await follow(self._process, printed.feed)
        if not endings.succeeded(exit):
            return services.Reply(
                printed.text, exit.code, endings.in_words(exit, self._launch, full=self._workdir.is_full)
            )
        await staging.carry()
        scales.add(await asyncio.to_thread(lambda: reply.size_of(self._workdir.left(reply.MOST_NAMES))))
        result = await asyncio.to_thread(lambda: reply.of_files(self._workdir.left(reply.MOST_NAMES)))
        return services.Reply(printed.text if result is None else result, exit.code, "")


class _Head:
    """The first bytes of a stream."""

    def __init__(self, most: int, scales: reply.Scales) -> None:
        self._most = most
        self._scales = scales
        self._kept = bytearray()

    def feed(self, data: bytes) -> None:
        more = data[: self._most - len(self._kept)]
        self._scales.add(len(more))
        self._kept += more

    @property
    def text(self) -> bytes:
        return bytes(self._kept)


def _unheard(level: str, text: str) -> None:
    """A synchronous call has no log: what goes wrong is in its answer."""
