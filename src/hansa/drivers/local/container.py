"""How does the manager hold one podman container: hear it, wait for it, stop it, reach it?

`podman.py` makes them; this is the `Process` of `runtime.py` over podman's command line.
"""

import asyncio
import contextlib
import math
import os
import shutil
import socket
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path

from hansa.drivers.local.launch import Exit, Launch, LaunchFailed, PortUnreachable
from hansa.drivers.local.launcher import network
from hansa.drivers.local.launcher.protocol import Reason
from hansa.drivers.local.pulling import Cell

_CALL_SECONDS = 60.0
_CHUNK = 64 * 1024


class PodmanCommand:
    """The podman program, with a configuration and an environment that are ours alone."""

    def __init__(self, run_dir: Path, configuration: Callable[[dict[str, str]], str]) -> None:
        run_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._run_dir = run_dir
        self._configured = configuration
        self._program = shutil.which("podman") or "podman"
        self._configuration = run_dir / "containers.conf"
        self._configuration.write_text(configuration({}))

    @contextlib.contextmanager
    def private_configuration(self, name: str, variables: Mapping[str, str]) -> Iterator[Path]:
        """One that also carries a container's variables, for our eyes only and for one call."""
        path = self._run_dir / f"{name}.conf"
        path.unlink(missing_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(fd, "w") as file:
                file.write(self._configured({"HOME": "/tmp", "LANG": "C.UTF-8", **variables}))  # noqa: S108
            yield path
        finally:
            path.unlink(missing_ok=True)

    async def spawn(
        self, *arguments: str, configuration: Path | None = None, cell: Cell | None = None
    ) -> asyncio.subprocess.Process:
        """`cell` is the network it runs in, if not this machine's."""
        within = ("nsenter", f"--net=/proc/self/fd/{cell.namespace}", "--") if cell is not None else ()
        return await asyncio.create_subprocess_exec(
            *within,
            self._program,
            *arguments,
            pass_fds=(cell.namespace,) if cell is not None else (),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=self._configuration.parent,  # its monitor leaves a file where it stands when memory runs out
            env={
                "PATH": os.environ.get("PATH", os.defpath),
                "HOME": os.environ.get("HOME", "/root"),
                "CONTAINERS_CONF": str(configuration or self._configuration),
                **(cell.variables if cell is not None else {}),
            },
        )

    async def call(
        self,
        *arguments: str,
        failing: str = "podman refused",
        seconds: float = _CALL_SECONDS,
        configuration: Path | None = None,
        cell: Cell | None = None,
    ) -> str:
        """What it prints; raises `LaunchFailed` with its last words."""
        code, said = await self._finished(arguments, seconds, configuration, cell)
        if code != 0:
            words = said.strip().splitlines()
            raise LaunchFailed(f"{failing}: {words[-1][:300] if words else f'exit code {code}'}")
        return said

    async def succeeds(self, *arguments: str) -> bool:
        code, _ = await self._finished(arguments, _CALL_SECONDS, None, None)
        return code == 0

    async def _finished(
        self, arguments: tuple[str, ...], seconds: float, configuration: Path | None, cell: Cell | None
    ) -> tuple[int | None, str]:
        process = await self.spawn(*arguments, configuration=configuration, cell=cell)
        try:
            async with asyncio.timeout(seconds):
                said, _ = await process.communicate()
        except TimeoutError:
            return None, f"no answer within {seconds:g} s"
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        return process.returncode, said.decode(errors="replace")


class Container:
    """A created container; started at once, or by `release` if it is held."""

    def __init__(self, podman: PodmanCommand, name: str, launch: Launch) -> None:
        self._podman = podman
        self._name = name
        self._launch = launch
        self._going = asyncio.Event()  # let go, or gone
        self._attached: asyncio.subprocess.Process | None = None
        self._reading = asyncio.Lock()
        self._unheard: deque[bytes] = deque()
        self._began = time.monotonic()
        self._reason: Reason = "exit"
        self._timers: list[asyncio.TimerHandle] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._exit: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()

    async def begin(self) -> None:
        if self._launch.hold:
            await self._podman.call("init", "--", self._name)  # all is set up but the program itself
        else:
            await self.release()

    async def release(self) -> None:
        if self._going.is_set() or self._exit.done():
            return
        self._began = time.monotonic()
        self._attached = await self._podman.spawn("start", "--attach", "--sig-proxy=false", "--", self._name)
        self._going.set()
        if math.isfinite(self._launch.seconds):
            self._after(self._launch.seconds, "timeout")

    async def output(self) -> AsyncIterator[bytes]:
        await self._going.wait()  # a held one prints nothing
        if self._attached is None:
            return
        while chunk := await self._next_chunk(self._attached):
            yield chunk
        await self._finish()

    async def _next_chunk(self, attached: asyncio.subprocess.Process) -> bytes:
        assert attached.stdout is not None
        async with self._reading:
            return self._unheard.popleft() if self._unheard else await attached.stdout.read(_CHUNK)

    async def _drain(self, attached: asyncio.subprocess.Process) -> None:
        """What a killed one had printed is kept for who hears it. It is little, and asyncio takes no process for ended
        whose pipe was not read to its end."""
        assert attached.stdout is not None
        async with self._reading:
            while chunk := await attached.stdout.read(_CHUNK):
                self._unheard.append(chunk)

    async def wait(self) -> Exit:
        if self._attached is not None and not self._exit.done():
            await self._attached.wait()
            await self._finish()
        return await asyncio.shield(self._exit)

    async def stop(self, grace: float) -> None:
        if self._exit.done():
            return
        self._reason = "stopped"
        if self._attached is None:
            await self.kill()
            return
        await self._podman.succeeds("kill", "--signal", "TERM", "--", self._name)
        self._after(grace, "stopped")

    async def kill(self) -> None:
        if self._exit.done():
            return
        if self._reason == "exit":
            self._reason = "killed"
        await self.remove()
        if self._attached is not None and self._attached.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._attached.kill()  # unread, it would wait for ever at its full pipe
            await self._drain(self._attached)
        await self._finish()

    async def dial(self, port: int, timeout: float) -> socket.socket:
        try:
            async with asyncio.timeout(timeout):
                made = await self._socket_inside()
                try:
                    await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", port))
                except BaseException:
                    made.close()
                    raise
                return made
        except (OSError, LaunchFailed, TimeoutError) as error:
            raise PortUnreachable(f"port {port} of {self._name}: {str(error) or 'no answer'}") from error

    async def remove(self) -> None:
        await self._podman.succeeds("rm", "--force", "--time", "0", "--", self._name)

    async def _socket_inside(self) -> socket.socket:
        if self._launch.network == "host":
            made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            made.setblocking(False)
            return made
        pid = await self._podman.call("inspect", "--format", "{{.State.Pid}}", "--", self._name)
        if int(pid) == 0:
            raise ProcessLookupError("it does not run")
        # in a thread of its own: a network namespace belongs to the thread that enters it
        return await asyncio.to_thread(network.socket_inside, int(pid), root=True)

    def _after(self, seconds: float, reason: Reason) -> None:
        def due() -> None:
            if not self._exit.done():
                self._reason = reason
                task = asyncio.create_task(self.kill(), name=f"end {self._name}")
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

        self._timers.append(asyncio.get_running_loop().call_later(seconds, due))

    async def _finish(self) -> None:
        """The program has ended: learn how, clear away, tell. May be called from several sides."""
        if self._exit.done():
            return
        code: int | None = None
        if self._attached is not None:
            code = await self._attached.wait()
        out_of_memory = False
        if self._reason == "exit":
            with contextlib.suppress(LaunchFailed):
                seen = await self._podman.call("inspect", "--format", "{{.State.OOMKilled}}", "--", self._name)
                out_of_memory = seen.strip() == "true"
        if self._exit.done():
            return
        for timer in self._timers:
            timer.cancel()
        reason = "oom" if out_of_memory else self._reason
        killed = reason in ("killed", "timeout") or (reason == "stopped" and code == 137)
        self._exit.set_result(Exit(None if killed else code, reason, time.monotonic() - self._began, None))
        self._going.set()
        await self.remove()
