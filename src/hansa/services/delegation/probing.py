"""How are the members now? Probed in parallel, remembered for a moment, and one that hangs delays nobody.

A decision never waits for a member of which something is known: it uses that and has fresh figures fetched in the
background. Of members that were not asked for long it waits for nearly all, not for the last ones. A member that failed
several times is left alone for a while (the breaker), and must answer twice before it gets work again (hysteresis).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import structlog

from hansa.kernel.clock import Clock
from hansa.kernel.errors import HansaError
from hansa.services.peers import PeerHistory, PeerStatus

_log = structlog.get_logger("hansa.delegation")
_FAILURES = 3  # in a row open the breaker
_FIRST_REST, _LONGEST_REST = 10.0, 60.0
_COMEBACK = 2  # answers in a row close it
_FORGOTTEN = 600.0  # seconds after it was last of interest
_STALE = 6  # times the usual life: older figures are no figures
_LAST = 8  # one in so many, at least one, need not answer before a decision
_GRACE_SHARE, _GRACE_LEAST, _GRACE_MOST = 0.05, 0.003, 0.25  # how long it waits for these, by how long it has waited

WaitFor = Literal["nobody", "most", "all"]
Probe = Callable[[float], Awaitable[tuple[PeerStatus, PeerHistory | None]]]


@dataclass(slots=True)
class _Known:
    status: PeerStatus | None = None
    history: PeerHistory | None = None
    at: float = float("-inf")
    trouble: str = "it was not asked yet"
    failures: int = 0
    answers: int = 0
    open_until: float = 0.0
    opened: int = 0  # how often the breaker opened in a row
    looking: asyncio.Task[None] | None = field(default=None)
    wanted: float = 0.0  # when it was last of interest


@dataclass(frozen=True, slots=True)
class Seen:
    """What a decision may use."""

    status: PeerStatus | None
    history: PeerHistory | None
    at: float
    trouble: str
    resting: bool = False  # it failed so often that it is left alone
    awaited: bool = False  # it is being asked just now


class Prober:
    def __init__(self, clock: Clock, *, ttl: float, timeout: float) -> None:
        self._clock = clock
        self._ttl = ttl
        self._timeout = timeout
        self._known: dict[str, _Known] = {}

    def adopt(self, *, ttl: float) -> None:
        """Figures are believed for so long from now on."""
        self._ttl = ttl

    async def look(self, wanted: Sequence[tuple[str, Probe]], wait_for: WaitFor = "most") -> dict[str, Seen]:
        """What is known of each, after `most` of those of which nothing was known have answered, or after `all` that
        are being asked; never longer than the time limit of one."""
        unknown: list[asyncio.Task[None]] = []
        now = self._clock.now()
        asked = dict(wanted)
        for key, probe in asked.items():
            known = self._of(key)
            if now - known.at < self._ttl or now < known.open_until:
                continue
            if known.looking is None or known.looking.done():
                known.looking = asyncio.create_task(self._ask(key, known, probe), name=f"probe {key}")
            if wait_for == "all" or (known.failures == 0 and self._is_stale(known)):
                unknown.append(known.looking)
        if unknown and wait_for != "nobody":
            few = max(1, len(asked) // _LAST) if len(asked) > 1 else 0
            await self._wait(unknown, 0 if wait_for == "all" else few)
        return {key: self._seen(self._known[key]) for key, _ in wanted}

    async def _wait(self, tasks: Sequence[asyncio.Task[None]], dispensable: int) -> None:
        """Until no more than a few are left, and then a little longer; not at all if there are only few."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        pending = set(tasks)
        if len(pending) <= dispensable:
            return
        while len(pending) > dispensable:
            left = began + self._timeout - loop.time()
            done, pending = await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                return
        if pending:
            grace = max(_GRACE_LEAST, min(_GRACE_MOST, _GRACE_SHARE * (loop.time() - began)))
            await asyncio.wait(pending, timeout=grace)

    def failed(self, key: str, why: str) -> None:
        """Somebody else could not reach it either: a hand-over, say."""
        self._note_failure(self._of(key), why)

    def _of(self, key: str) -> _Known:
        now = self._clock.now()
        if key not in self._known:
            for old, known in list(self._known.items()):
                if now - known.wanted > _FORGOTTEN and (known.looking is None or known.looking.done()):
                    del self._known[old]
        known = self._known.setdefault(key, _Known())
        known.wanted = now
        return known

    async def close(self) -> None:
        tasks = [one.looking for one in self._known.values() if one.looking is not None and not one.looking.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _is_stale(self, known: _Known) -> bool:
        return self._clock.now() - known.at > self._ttl * _STALE

    def _seen(self, known: _Known) -> Seen:
        awaited = known.looking is not None and not known.looking.done()
        if self._clock.now() < known.open_until:
            why = f"it failed {known.failures} times in a row: {known.trouble}"
            return Seen(None, None, known.at, why, resting=True, awaited=awaited)
        if known.opened and known.answers < _COMEBACK:
            return Seen(None, None, known.at, "it has just come back", awaited=awaited)
        if known.status is None or self._is_stale(known):
            return Seen(None, None, known.at, known.trouble or "its last figures are too old", awaited=awaited)
        return Seen(known.status, known.history, known.at, "", awaited=awaited)

    async def _ask(self, key: str, known: _Known, probe: Probe) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                known.status, known.history = await probe(self._timeout)
        except TimeoutError:
            self._note_failure(known, f"no answer within {self._timeout:g} s")
        except HansaError as error:
            self._note_failure(known, error.message)
        except Exception as error:  # a lying peer must not take a loop down
            _log.exception("probe failed", member=key)
            self._note_failure(known, type(error).__name__)
        else:
            known.at, known.trouble, known.failures = self._clock.now(), "", 0
            known.answers += 1
            if known.answers >= _COMEBACK:
                known.opened = 0

    def _note_failure(self, known: _Known, why: str) -> None:
        known.trouble = why
        known.failures += 1
        known.answers = 0
        if self._clock.now() < known.open_until:
            return  # many hand-overs fail at once when one link breaks: that is one reason to rest, not many
        # one that has not quite come back yet gets no new chances
        if known.failures >= _FAILURES or known.opened:
            rest = min(_LONGEST_REST, _FIRST_REST * 2 ** min(known.opened, 10))
            known.open_until = self._clock.now() + rest
            known.opened += 1
