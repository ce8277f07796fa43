"""A gate before a server: lets HTTP through, or refuses, hangs, loses answers, or stops at one chosen request.

    with gate(("127.0.0.1", 8080)) as visby:
        held = visby.hold("POST /system/services")    # the request waits before the server sees it
        held = visby.hold("POST /job/", after=True)   # the server got it, its answer waits
        held.reached(); …; held.release()

One thread carries all connections of a test process. Listening and connecting may happen in network namespaces: a
socket belongs to the namespace of the thread that made it.
"""

import asyncio
import contextlib
import ctypes
import os
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

T = TypeVar("T")
Mode = Literal["open", "refuse", "hang", "deaf"]  # deaf: requests pass, answers never come back
_CLONE_NEWNET = 0x4000_0000
_CHUNK = 1 << 16
_METHODS = (b"GET ", b"POST ", b"PUT ", b"DELETE ")
PATIENCE = 30.0
_TURNS = 5  # of the loop, from accepting a connection to its task


def in_namespace(name: str, make: Callable[[], T]) -> T:
    """What `make` gives, called by a thread that has entered the network namespace; "" is our own."""
    if not name:
        return make()
    made: list[T] = []
    trouble: list[BaseException] = []

    def enter() -> None:
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            with Path("/run/netns", name).open() as namespace:
                if libc.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), f"cannot enter the namespace {name}")
            made.append(make())
        except BaseException as error:  # handed on to whoever asked
            trouble.append(error)

    thread = threading.Thread(target=enter, name=f"in {name}")
    thread.start()
    thread.join(PATIENCE)
    if trouble:
        raise trouble[0]
    return made[0]


@dataclass(slots=True)
class Held:
    """One request stopped on its way."""

    begins: bytes
    after: bool
    _there: threading.Event = field(default_factory=threading.Event)
    _go: threading.Event = field(default_factory=threading.Event)
    taken: bool = False
    lost: bool = False  # whoever waits at it is sent away instead

    def reached(self, seconds: float = PATIENCE) -> None:
        """Waits until the request has come here."""
        assert self._there.wait(seconds), f"nobody sent {self.begins.decode()!r} within {seconds:g} s"

    def release(self, *, lost: bool = False) -> None:
        """Lets it go on; `lost` breaks its connection instead."""
        self.lost = lost
        self._go.set()

    async def wait(self) -> None:
        self._there.set()
        while not self._go.is_set():
            await asyncio.sleep(0.01)


@dataclass(slots=True)
class Gate:
    port: int
    target: tuple[str, int]
    namespace: str = ""  # from which it connects
    mode: Mode = "open"
    requests: list[str] = field(default_factory=list)  # first lines of what came by
    overheard: bytearray | None = None  # all that was said there and back, from when this is set
    _holds: list[Held] = field(default_factory=list)
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def hold(self, begins: str, *, after: bool = False) -> Held:
        """The next request that begins so stops here: before the server sees it, or after, before its answer."""
        held = Held(begins.encode(), after)
        self._holds.append(held)
        return held

    def shut(self, mode: Mode = "refuse") -> None:
        """From now on; connections that are open end at once."""
        self.mode = mode
        _loop().call_soon_threadsafe(self._abort)

    def open(self) -> None:
        self.mode = "open"
        for held in self._holds:
            held.release()
        self._holds.clear()

    def _abort(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        server: asyncio.StreamWriter | None = None
        try:
            if self.mode == "refuse":
                return
            while self.mode == "hang":
                await asyncio.sleep(0.02)
            answers, server = await self._connect()
            self._open.add(server)
            waiting: list[Held] = []
            async with asyncio.TaskGroup() as ways:
                ways.create_task(self._there(reader, server, waiting))
                ways.create_task(self._back(answers, writer, waiting))
        except (OSError, ExceptionGroup, asyncio.IncompleteReadError):
            pass  # either side may leave at any time
        finally:
            for one in (writer, server):
                if one is not None:
                    self._open.discard(one)
                    one.transport.abort() if self.mode == "refuse" else one.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        making = asyncio.ensure_future(asyncio.to_thread(in_namespace, self.namespace, socket.socket))
        try:
            made = await asyncio.shield(making)
        except asyncio.CancelledError:
            making.add_done_callback(lambda late: late.result().close())
            raise
        made.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(made, self.target)
            return await asyncio.open_connection(sock=made)
        except BaseException:
            made.close()
            raise

    def _overhear(self, data: bytes) -> None:
        if self.overheard is not None:
            self.overheard += data

    async def _there(self, reader: asyncio.StreamReader, server: asyncio.StreamWriter, waiting: list[Held]) -> None:
        while data := await reader.read(_CHUNK):
            self._overhear(data)
            if data.startswith(_METHODS):
                self.requests.append(data.split(b"\r\n", 1)[0].decode("latin-1"))
                held = next((one for one in self._holds if not one.taken and data.startswith(one.begins)), None)
                if held is not None:
                    held.taken = True
                    if held.after:
                        waiting.append(held)
                    else:
                        await held.wait()
                        if held.lost:
                            raise ConnectionResetError("the gate lost it")
            server.write(data)
            await server.drain()
        server.close()

    async def _back(self, answers: asyncio.StreamReader, writer: asyncio.StreamWriter, waiting: list[Held]) -> None:
        while data := await answers.read(_CHUNK):
            while waiting:
                held = waiting.pop()
                await held.wait()
                if held.lost:
                    raise ConnectionResetError("the gate lost the answer")
            while self.mode == "deaf":
                await asyncio.sleep(0.02)
            self._overhear(data)
            writer.write(data)
            await writer.drain()
        writer.close()


@contextlib.contextmanager
def gate(
    target: tuple[str, int], *, port: int = 0, host: str = "127.0.0.1", listen_in: str = "", connect_in: str = ""
) -> Iterator[Gate]:
    """A gate at a port of loopback (of a namespace, if told) before this server (in a namespace, if told)."""
    listening = in_namespace(listen_in, lambda: socket.create_server((host, port)))
    made = Gate(int(listening.getsockname()[1]), target, connect_in)
    tasks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(made.serve(reader, writer), name=f"gate {made.port}")
        tasks[task] = writer
        task.add_done_callback(tasks.pop)

    async def start() -> asyncio.Server:
        return await asyncio.start_server(accept, sock=listening)

    async def stop() -> None:
        # Nobody is let in any more; those who just were get their tasks first: a server that is closed loses them.
        asyncio.get_running_loop().remove_reader(listening)
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        server.close()
        under_way = dict(tasks)
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        for writer in under_way.values():
            writer.transport.abort()  # one that is cancelled before its first step never runs a line of its own

    server = asyncio.run_coroutine_threadsafe(start(), _loop()).result(PATIENCE)
    try:
        yield made
    finally:
        made.open()
        asyncio.run_coroutine_threadsafe(stop(), _loop()).result(PATIENCE)


_started: dict[int, asyncio.AbstractEventLoop] = {}


def _loop() -> asyncio.AbstractEventLoop:
    """The loop of this process's gates, in a thread of its own so that a test that blocks holds nothing up."""
    if os.getpid() not in _started:
        loop = _started[os.getpid()] = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, name="gates", daemon=True).start()
    return _started[os.getpid()]
