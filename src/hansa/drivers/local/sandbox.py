"""How does the manager run programs it does not trust? Through one launcher process that does the forking.

The local driver opens one `Sandbox` per manager. `launcher/` holds the other side, `launch.py` the words.
"""

import asyncio
import contextlib
import functools
import itertools
import os
import re
import socket
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from hansa.drivers.local.launch import (
    Bind,
    CallOff,
    Ceiling,
    Device,
    Exit,
    Launch,
    LaunchFailed,
    LaunchInvalid,
    Level,
    PortUnreachable,
    SandboxLost,
    SandboxRefused,
    Watched,
)
from hansa.drivers.local.launcher import protocol
from hansa.drivers.local.process import Process

__all__ = [
    "Bind",
    "Ceiling",
    "Device",
    "Exit",
    "Launch",
    "LaunchFailed",
    "LaunchInvalid",
    "Level",
    "PortUnreachable",
    "Process",
    "Sandbox",
    "SandboxLost",
    "SandboxRefused",
    "Watched",
    "probe",
]

_START_SECONDS = 30.0
_CLOSE_SECONDS = 10.0
_INSTANCE = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
# -I keeps the launcher from everything but the standard library; the last entries of its path are this directory, and
# the one of the program that moves files
_BOOT = "import sys; sys.path += [sys.argv.pop(1), sys.argv.pop(1)]; from launcher.main import main; main()"
_FOLDERS = (str(Path(__file__).parent), str(Path(__file__).parent.parent / "runs"))


class Sandbox:
    """The launcher of this manager and the jobs it has started."""

    def __init__(self, channel: socket.socket, launcher: asyncio.subprocess.Process, level: Level) -> None:
        self.level = level
        self.lost = asyncio.Event()
        """Set if the launcher dies by itself; its jobs have then ended as `lost`."""
        self._channel = channel
        self._launcher = launcher
        self._closing = False
        self._gone = asyncio.Event()
        self._turn = asyncio.Lock()
        self._calls = itertools.count(1)
        self._starting: dict[str, asyncio.Future[None]] = {}
        self._running: dict[str, tuple[Process, float]] = {}
        self._dialling: dict[int, asyncio.Future[socket.socket]] = {}
        asyncio.get_running_loop().add_reader(channel, self._hear)

    @classmethod
    async def open(
        cls, *, instance: str, uid_base: int, run_dir: Path, ceiling: Ceiling | None = None, jobs: bool = True
    ) -> "Sandbox":
        """Start the launcher, which first ends whatever an earlier one of this instance left behind.

        As root, the 256 uids from `uid_base` on belong to this instance alone; without `jobs`, others run under them.
        """
        if not _INSTANCE.fullmatch(instance):
            raise LaunchInvalid(f"{instance!r} is no instance name", hint="small letters, digits and dashes")
        config = protocol.Config(instance, uid_base, str(run_dir), ceiling=ceiling or Ceiling(), jobs=jobs)
        channel, launcher, level = await _launch(config)
        return cls(channel, launcher, level)

    @property
    def launcher_pid(self) -> int:
        """For those who watch over it."""
        return self._launcher.pid

    @property
    def exit_code(self) -> int | None:
        """Of the launcher; negative is a signal's number, and None while it runs."""
        return self._launcher.returncode

    async def start(self, launch: Launch) -> Process:
        """Returns when the sandbox stands; the program's own failures come as output and exit code."""
        if launch.id in self._running or launch.id in self._starting:
            raise LaunchInvalid(f"job {launch.id} runs already")
        packet = protocol.encode({"op": "start", "order": protocol.fields(launch.order())})
        if len(packet) > protocol.LARGEST_PACKET:
            raise LaunchInvalid(
                f"job {launch.id}: arguments and environment take {len(packet)} bytes",
                hint=f"at most {protocol.LARGEST_PACKET}; put large values into a file in the workdir",
            )
        reading, writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(reading, False)
        isolated = self.level.network == "netns"
        process = Process(launch.id, self, reading, network=launch.network, isolated=isolated)
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._starting[launch.id] = started
        self._running[launch.id] = process, time.monotonic()
        try:
            try:
                await self._send(packet, [writing, *(device.handle for device in launch.devices)])
            finally:
                os.close(writing)
            await started
        except asyncio.CancelledError:
            await self.tell({"op": "kill", "id": launch.id})  # `ended` will clear it away
            raise
        except BaseException:
            self._running.pop(launch.id, None)
            raise
        finally:
            self._starting.pop(launch.id, None)
        return process

    async def stage(self, channel: socket.socket, folders: Sequence[int], tls: Iterable[bool] = ()) -> CallOff:
        """A child that moves files between these folders and what it is told of over the channel. `tls` tells ahead
        whether certificates of stores are checked, of stores that have any."""
        call = next(self._calls)
        request = {"op": "stage", "call": call, "tls": sorted(set(tls))}
        await self._send(protocol.encode(request), [channel.fileno(), *folders])
        return functools.partial(self.tell, {"op": "unstage", "call": call})  # numbers are this launcher's own

    async def close(self) -> None:
        """Kill every job and end the launcher."""
        self._closing = True
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)  # it still tells us how the jobs end
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._gone.wait()
                await self._launcher.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._launcher.kill()
            await self._launcher.wait()
            self._leave()

    async def tell(self, message: protocol.Message) -> None:
        """For `Process`: news for the launcher; to a dead one it does not matter any more."""
        with contextlib.suppress(SandboxLost):
            await self._send(protocol.encode(message))

    async def dial(self, id: str, port: int, timeout: float) -> socket.socket:
        """For `Process`: connect inside the network of a job."""
        call = next(self._calls)
        answer: asyncio.Future[socket.socket] = asyncio.get_running_loop().create_future()
        self._dialling[call] = answer
        request = {"op": "dial", "call": call, "id": id, "port": port, "timeout": timeout}
        try:
            await self._send(protocol.encode(request))
            async with asyncio.timeout(timeout + 1):
                return await answer
        except (OSError, TimeoutError) as error:
            raise PortUnreachable(f"port {port} of job {id}: {str(error) or 'no answer'}") from error
        finally:
            self._dialling.pop(call, None)

    async def _send(self, packet: bytes, fds: list[int] | None = None) -> None:
        async with self._turn:
            while True:
                if self._gone.is_set() or self._closing:
                    raise SandboxLost("the launcher of local jobs is gone", hint="open the sandbox again")
                try:
                    protocol.send(self._channel, packet, fds or ())
                except BlockingIOError:
                    await self._room()
                except OSError as error:
                    raise SandboxLost("the launcher of local jobs is gone") from error
                else:
                    return

    async def _room(self) -> None:
        loop = asyncio.get_running_loop()
        writable = asyncio.Event()
        loop.add_writer(self._channel, writable.set)
        try:
            await writable.wait()
        finally:
            loop.remove_writer(self._channel)

    def _hear(self) -> None:
        while not self._gone.is_set():
            try:
                message, fds = protocol.receive(self._channel)
            except BlockingIOError:
                return
            if message is None:
                self._leave()
            else:
                self._dispatch(message, fds)

    def _dispatch(self, message: protocol.Message, fds: list[int]) -> None:
        match message["event"]:
            case "started":
                started = self._starting.get(message["id"])
                if started is not None and not started.done():
                    started.set_result(None)
            case "failed":
                self._running.pop(message["id"], None)
                started = self._starting.get(message["id"])
                if started is not None and not started.done():
                    error = f"job {message['id']}: {message['error']}"
                    started.set_exception(LaunchFailed(error, hint="see that its directories exist"))
            case "ended":
                process, _ = self._running.pop(message["id"], (None, 0.0))
                wanted = ("code", "reason", "seconds", "cpu_seconds")
                if process is not None:
                    process.ended(Exit(**{key: message[key] for key in wanted}))
            case "dialled" | "undialled":
                self._answer(message, [socket.socket(fileno=fd) for fd in fds])

    def _answer(self, message: protocol.Message, connected: list[socket.socket]) -> None:
        answer = self._dialling.get(message["call"])
        if answer is None or answer.done():  # nobody waits any more
            for connection in connected:
                connection.close()
        elif connected:
            connected[0].setblocking(False)
            answer.set_result(connected[0])
        else:
            answer.set_exception(ConnectionError(message.get("error", "no descriptor is left for the connection")))

    def _leave(self) -> None:
        """The launcher is gone, and with it every job."""
        if self._gone.is_set():
            return
        asyncio.get_running_loop().remove_reader(self._channel)
        self._channel.close()
        self._gone.set()
        for started in self._starting.values():
            if not started.done():
                started.set_exception(SandboxLost("the launcher of local jobs has died"))
        for answer in self._dialling.values():
            if not answer.done():
                answer.set_exception(ConnectionError("the launcher of local jobs has died"))
        for process, since in self._running.values():
            process.ended(Exit(None, "lost", time.monotonic() - since, None))
        self._running.clear()
        if not self._closing:
            self.lost.set()


async def probe(ceiling: Ceiling | None = None) -> Level:
    """What this machine can reach, without leaving anything behind."""
    with tempfile.TemporaryDirectory(prefix="hansa-probe-") as directory:
        name = f"probe-{os.getpid()}-{time.monotonic_ns() % 1_000_000}"
        config = protocol.Config(name, 65534, directory, probe=True, ceiling=ceiling or Ceiling(), jobs=False)
        channel, launcher, level = await _launch(config)
        channel.close()
        await launcher.wait()
    return level


async def _launch(config: protocol.Config) -> tuple[socket.socket, asyncio.subprocess.Process, Level]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * protocol.LARGEST_PACKET)
    ours.setblocking(False)
    theirs.setblocking(True)
    with theirs:
        launcher = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-S", "-c", _BOOT, *_FOLDERS, str(theirs.fileno()), config.to_json()),
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"},  # no secret of ours
            start_new_session=True,
        )
    try:
        message = await _first_message(ours)
        if message["event"] == "refused":
            raise SandboxRefused(message["reason"], hint=message["hint"])
    except BaseException:
        ours.close()
        with contextlib.suppress(ProcessLookupError):
            launcher.kill()
        await launcher.wait()
        raise
    return ours, launcher, Level(**message["level"])


async def _first_message(channel: socket.socket) -> protocol.Message:
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(channel, readable.set)
    try:
        async with asyncio.timeout(_START_SECONDS):
            await readable.wait()
    except TimeoutError:
        raise SandboxRefused("the launcher of local jobs does not answer") from None
    finally:
        loop.remove_reader(channel)
    message, _ = protocol.receive(channel)
    if message is None:
        raise SandboxRefused("the launcher of local jobs ended at once", hint="its error output says why")
    return message
