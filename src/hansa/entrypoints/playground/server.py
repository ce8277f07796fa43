"""How does one process of the playground live? Started on a lifeline, asked until it is ready, stopped for good.

Between us and the process stands `lifeline.py`, which ends it however we died. `member.py` is a manager, `hub.py` the
hub.
"""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import httpx

from hansa.kernel.errors import HansaError, Kind

_LIFELINE = Path(__file__).with_name("lifeline.py")
_LOG_BYTES = 8 * 2**20
_GRACE = 20.0  # a manager first ends its answers, its jobs and its store
_START_SECONDS = 90.0  # it takes five; a machine under heavy load takes longer
_ASK_EVERY = 0.1
_SHOWN_LINES = 12


class NotStarted(HansaError):
    """A part of the playground does not start."""

    code, kind = "playground.not-started", Kind.UNAVAILABLE


class Server:
    """One `hansa server`, and what kind it is in a sentence: "the manager", "the hub"."""

    def __init__(self, name: str, kind: str, log: Path, url: str, env: Mapping[str, str], lock: int) -> None:
        self.name, self.kind, self.url = name, kind, url
        self._log = log
        self._env = dict(env)
        self._lock = lock
        self._lifeline: asyncio.subprocess.Process | None = None
        self._log_began = 0
        self.pid = 0

    async def run(self) -> None:
        """Returns when it is ready; raises `NotStarted`, with nothing left running, if it does not get so."""
        self._log_began = self._log.stat().st_size if self._log.exists() else 0
        try:
            with self._log.open("ab") as errors:
                self._lifeline = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-S", str(_LIFELINE)),
                    *(str(self._log), str(_LOG_BYTES), str(_GRACE)),
                    *(sys.executable, "-m", "hansa", "server"),
                    stdin=asyncio.subprocess.PIPE,  # held open for as long as we live
                    stdout=asyncio.subprocess.PIPE,
                    stderr=errors,
                    env=self._env,
                    cwd=self._log.parent,
                    pass_fds=(self._lock,),
                    start_new_session=True,  # Ctrl-C is for us; we tell the servers
                )
            async with asyncio.timeout(_START_SECONDS), self.asking() as http:
                await self._ready(self._lifeline, http)
                await self.look(http)
        except TimeoutError:
            await self.stop()
            raise self.not_started(f"is not ready after {_START_SECONDS:.0f} s") from None

    def asking(self, auth: tuple[str, str] | None = None) -> httpx.AsyncClient:
        # trust_env: a proxy of the person's is not for loopback
        return httpx.AsyncClient(base_url=self.url, timeout=10, trust_env=False, auth=auth)

    async def _ready(self, lifeline: asyncio.subprocess.Process, http: httpx.AsyncClient) -> None:
        assert lifeline.stdout is not None
        self.pid = int((await lifeline.stdout.readline()).strip() or 0)
        while True:
            if lifeline.returncode is not None:
                raise self.not_started(f"ended with {in_words(lifeline.returncode)} while it started")
            with contextlib.suppress(httpx.TransportError):
                if (await http.get("/ready")).status_code == 200:
                    return
            await asyncio.sleep(_ASK_EVERY)

    async def look(self, http: httpx.AsyncClient) -> None:
        """What else has to be true of one that is ready."""

    def not_started(self, what: str) -> NotStarted:
        return NotStarted(
            f"{self.kind} {what}" if self.name in self.kind else f"{self.kind} of {self.name} {what}",
            hint=f"its whole log is {os.path.relpath(self._log)}; `.venv/bin/hansa doctor` checks this machine",
            log=self.last_lines(),
        )

    def last_lines(self) -> list[str]:
        """The end of what it said since its last start."""
        try:
            content = self._log.read_bytes()
        except OSError:
            return []
        fresh = content[self._log_began :] if len(content) >= self._log_began else content
        return fresh.decode(errors="replace").splitlines()[-_SHOWN_LINES:]

    async def ended(self) -> int:
        """Waits for its end and says how it was: a code, or 128 and a signal."""
        assert self._lifeline is not None
        return await self._lifeline.wait()

    async def stop(self) -> None:
        """Ends it and everything it started, whatever state it is in."""
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
                lifeline.kill()  # the kernel then kills the server
            await lifeline.wait()


def reached(host: str) -> str:
    """The host of an address that listens there."""
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104


def in_words(code: int) -> str:
    return f"signal {code - 128}" if code > 128 else f"code {code}"


class BackOff:
    """How long to wait before a server that died is started again."""

    _PAUSES = (0.2, 1.0, 3.0, 10.0, 30.0)
    _STEADY = 60.0  # one that lived this long did not die of how it was started

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
