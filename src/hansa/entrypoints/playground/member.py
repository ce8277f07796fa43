"""How does one manager of the playground live? Started on a lifeline, asked until it is ready, stopped for good.

Between us and the manager stands `lifeline.py`, which ends the manager however we died.
"""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from hansa import settings
from hansa.entrypoints.playground.plan import Place
from hansa.kernel.errors import HansaError, Kind
from hansa.settings import Settings

_LIFELINE = Path(__file__).with_name("lifeline.py")
_LOG_BYTES = 8 * 2**20
_GRACE = 20.0  # a manager first ends its answers, its jobs and its store
_START_SECONDS = 90.0  # it takes five; a machine under heavy load takes longer
_ASK_EVERY = 0.1
_SHOWN_LINES = 12


class NotStarted(HansaError):
    """A manager of the playground does not start."""

    code, kind = "playground.not-started", Kind.UNAVAILABLE


@dataclass(frozen=True, slots=True)
class Address:
    """How to reach a manager that is ready."""

    id: str
    url: str
    admin_user: str
    admin_password: str
    s3_url: str


class Member:
    def __init__(self, place: Place, given: Settings, env: Mapping[str, str], lock: int) -> None:
        self.place = place
        host = given.http.host
        reached = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
        self.url = f"http://{reached}:{place.port}"
        self._user, self._password = given.admin.user, settings.admin_password(given)
        self._env = dict(env)
        self._lock = lock
        self._lifeline: asyncio.subprocess.Process | None = None
        self._log_began = 0
        self.pid = 0

    async def start(self) -> Address:
        """Returns when the manager is ready; raises `NotStarted`, with nothing left running, if it does not get so."""
        self._log_began = self.place.log.stat().st_size if self.place.log.exists() else 0
        try:
            with self.place.log.open("ab") as errors:
                self._lifeline = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-S", str(_LIFELINE)),
                    *(str(self.place.log), str(_LOG_BYTES), str(_GRACE)),
                    *(sys.executable, "-m", "hansa", "server"),
                    stdin=asyncio.subprocess.PIPE,  # held open for as long as we live
                    stdout=asyncio.subprocess.PIPE,
                    stderr=errors,
                    env=self._env,
                    cwd=self.place.folder,
                    pass_fds=(self._lock,),
                    start_new_session=True,  # Ctrl-C is for us; we tell the managers
                )
            async with asyncio.timeout(_START_SECONDS):
                return await self._ready(self._lifeline)
        except TimeoutError:
            await self.stop()
            raise self._not_started(f"is not ready after {_START_SECONDS:.0f} s") from None

    async def _ready(self, lifeline: asyncio.subprocess.Process) -> Address:
        assert lifeline.stdout is not None
        self.pid = int((await lifeline.stdout.readline()).strip() or 0)
        # trust_env: a proxy of the person's is not for loopback
        async with httpx.AsyncClient(base_url=self.url, timeout=10, trust_env=False) as http:
            while True:
                if lifeline.returncode is not None:
                    raise self._not_started(f"ended with {in_words(lifeline.returncode)} while it started")
                with contextlib.suppress(httpx.TransportError):
                    if (await http.get("/ready")).status_code == 200:
                        return await self._address(http)
                await asyncio.sleep(_ASK_EVERY)

    async def _address(self, http: httpx.AsyncClient) -> Address:
        answer = await http.get("/system/config", auth=(self._user, self._password))
        if answer.status_code != 200:
            raise self._not_started(f"answers {answer.status_code} to its admin; does another server use {self.url}?")
        store = answer.json()["minio_provider"]["endpoint"]
        return Address(self.place.id, self.url, self._user, self._password, store)

    def _not_started(self, what: str) -> NotStarted:
        return NotStarted(
            f"the manager of {self.place.id} {what}",
            hint=f"its whole log is {os.path.relpath(self.place.log)}; `.venv/bin/hansa doctor` checks this machine",
            log=self.last_lines(),
        )

    def last_lines(self) -> list[str]:
        """The end of what the manager said since its last start."""
        try:
            content = self.place.log.read_bytes()
        except OSError:
            return []
        fresh = content[self._log_began :] if len(content) >= self._log_began else content
        return fresh.decode(errors="replace").splitlines()[-_SHOWN_LINES:]

    async def ended(self) -> int:
        """Waits for the manager's end and says how it was: a code, or 128 and a signal."""
        assert self._lifeline is not None
        return await self._lifeline.wait()

    async def stop(self) -> None:
        """Ends the manager and everything it started, whatever state it is in."""
        lifeline = self._lifeline
        if lifeline is None or lifeline.returncode is not None:
            return
        assert lifeline.stdin is not None
        lifeline.stdin.close()
        try:
            async with asyncio.timeout(_GRACE + 5):
                await lifeline.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                lifeline.kill()  # the kernel then kills the manager
            await lifeline.wait()


def in_words(code: int) -> str:
    return f"signal {code - 128}" if code > 128 else f"code {code}"


class BackOff:
    """How long to wait before a manager that died is started again."""

    _PAUSES = (0.2, 1.0, 3.0, 10.0, 30.0)
    _STEADY = 60.0  # a manager that lived this long did not die of how it was started

    def __init__(self) -> None:
        self._failures = 0
        self._began = time.monotonic()

    def began(self) -> None:
        self._began = time.monotonic()

    def pause(self) -> float:
        if time.monotonic() - self._began > self._STEADY:
            self._failures = 0
        pause = self._PAUSES[min(self._failures, len(self._PAUSES) - 1)]
        self._failures += 1
        return pause
