"""How are the members now? Probed in parallel, remembered for a moment, and one that hangs delays nobody.

A decision never waits for a member that was asked before: it uses what is known and has the rest looked up in the
background. A member that failed several times is left alone for a while (the breaker), and must answer twice before
it is asked for work again (hysteresis).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import structlog

from hansa.kernel.clock import Clock
from hansa.kernel.errors import HansaError
from hansa.services.peers import PeerHistory, PeerStatus

_log = structlog.get_logger("hansa.delegation")
_FAILURES = 3  # in a row open the breaker
_FIRST_REST, _LONGEST_REST = 10.0, 120.0
_COMEBACK = 2  # answers in a row close it
_STALE = 6  # times the usual life: older figures are no figures

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


@dataclass(frozen=True, slots=True)
class Seen:
    """What a decision may use."""

    status: PeerStatus | None
    history: PeerHistory | None
    at: float
    trouble: str


class Prober:
    def __init__(self, clock: Clock, *, ttl: float, timeout: float) -> None:
        self._clock = clock
        self._ttl = ttl
        self._timeout = timeout
        self._known: dict[str, _Known] = {}

    async def look(self, wanted: Sequence[tuple[str, Probe]]) -> dict[str, Seen]:
        """What is known of each; waits only for those never asked before, and for them not long."""
        first: list[asyncio.Task[None]] = []
        now = self._clock.now()
        for key, probe in wanted:
            known = self._known.setdefault(key, _Known())
            if now - known.at < self._ttl or now < known.open_until:
                continue
            new = known.looking is None or known.looking.done()
            if new:
                known.looking = asyncio.create_task(self._ask(key, known, probe), name=f"probe {key}")
            if known.at == float("-inf") and known.looking is not None and known.failures == 0:
                first.append(known.looking)
        if first:
            await asyncio.wait(first, timeout=self._timeout)
        return {key: self._seen(self._known[key]) for key, _ in wanted}

    def failed(self, key: str, why: str) -> None:
        """Somebody else could not reach it either: a hand-over, say."""
        self._note_failure(self._known.setdefault(key, _Known()), why)

    async def close(self) -> None:
        tasks = [one.looking for one in self._known.values() if one.looking is not None and not one.looking.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _seen(self, known: _Known) -> Seen:
        now = self._clock.now()
        if now < known.open_until:
            return Seen(None, None, known.at, f"it failed {known.failures} times in a row: {known.trouble}")
        if known.opened and known.answers < _COMEBACK:
            return Seen(None, None, known.at, "it has just come back")
        if known.status is None or now - known.at > self._ttl * _STALE:
            return Seen(None, None, known.at, known.trouble or "its last figures are too old")
        return Seen(known.status, known.history, known.at, "")

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
        if known.failures >= _FAILURES:
            rest = min(_LONGEST_REST, _FIRST_REST * 2**known.opened)
            known.open_until = self._clock.now() + rest
            known.opened += 1
