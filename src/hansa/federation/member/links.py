"""How are the other clusters reached from here? Probed in turn, judged with patience, told when it matters.

One lost answer is no outage and one answer no recovery. The hub is told of every link that goes up or down, and of
latency and loss only when they differ noticeably from what it was told, so that heartbeats stay small.
"""

import asyncio
import statistics
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import structlog

from hansa.federation.member.ports import Probe
from hansa.kernel.clock import Clock
from hansa.kernel.errors import HansaError
from hansa.messages.members import LinkSeen, Neighbour

_log = structlog.get_logger("hansa.membership")
_WINDOW = 20  # probes
_FAILURES, _ANSWERS = 3, 2  # in a row until a link is down, or up again
_PER_ROUND, _AT_ONCE, _MOST_TOLD = 64, 8, 512
_TIMEOUT = 3.0
_LONGEST_REASON = 200
_NOT_PROBED = frozenset({"pending", "left"})


@dataclass(slots=True)
class _Link:
    endpoint: str
    results: deque[float | None] = field(default_factory=lambda: deque(maxlen=_WINDOW))
    up: bool | None = None  # not known yet
    since: float = 0.0
    failures: int = 0
    answers: int = 0
    reason: str = ""
    told: LinkSeen | None = None

    def note(self, seconds: float | None, why: str, now: float) -> bool:
        """Whether it went up or down by this."""
        self.results.append(seconds)
        if seconds is None:
            self.failures, self.answers = self.failures + 1, 0
            turned = self.up is not False and self.failures >= _FAILURES
        else:
            self.failures, self.answers = 0, self.answers + 1
            turned = self.up is None or (not self.up and self.answers >= _ANSWERS)
        if turned:
            self.up, self.since = seconds is not None, now
            self.reason = why[:_LONGEST_REASON]
        return turned

    def seen(self, target: str) -> LinkSeen | None:
        """What the hub is told: as before, unless it differs noticeably."""
        if self.up is None:
            return None
        answered = [one for one in self.results if one is not None]
        fresh = LinkSeen(
            target=target,
            up=self.up,
            since=self.since,
            latency=round(statistics.median(answered), 5) if answered else None,
            loss=round(1 - len(answered) / len(self.results), 3),
            reason=self.reason,
        )
        if self.told is None or _differs(self.told, fresh):
            self.told = fresh
        return self.told


def _differs(told: LinkSeen, fresh: LinkSeen) -> bool:
    if (told.up, told.since) != (fresh.up, fresh.since) or abs(told.loss - fresh.loss) >= 0.1:
        return True
    if told.latency is None or fresh.latency is None:
        return told.latency is not fresh.latency
    return abs(told.latency - fresh.latency) > max(0.005, 0.25 * told.latency)


class Links:
    def __init__(self, probe: Probe, clock: Clock, *, per_round: int = _PER_ROUND, timeout: float = _TIMEOUT) -> None:
        self._probe = probe
        self._clock = clock
        self._per_round = per_round
        self._timeout = timeout
        self._neighbours: dict[str, Neighbour] = {}
        self._links: dict[str, _Link] = {}
        self._last = ""  # whom the rotation came to

    def know(self, neighbours: Iterable[Neighbour]) -> None:
        """What was measured stays, but for clusters that are gone or have moved."""
        self._neighbours = {
            one.id: one for one in neighbours if one.endpoint and one.state not in _NOT_PROBED
        }  # fmt: skip
        for target, link in list(self._links.items()):
            known = self._neighbours.get(target)
            if known is None or known.endpoint != link.endpoint:
                del self._links[target]

    def turn(self, preferred: frozenset[str] = frozenset()) -> list[Neighbour]:
        """Who is probed in this round: all if they are few, else those we talk to, and of the others the next ones."""
        if len(self._neighbours) <= self._per_round:
            return list(self._neighbours.values())
        first = sorted(preferred & self._neighbours.keys())[: self._per_round // 2]
        others = sorted(self._neighbours.keys() - set(first))
        start = next((index for index, ident in enumerate(others) if ident > self._last), 0)
        chosen = (others[start:] + others[:start])[: self._per_round - len(first)]
        self._last = chosen[-1] if chosen else ""
        return [self._neighbours[ident] for ident in (*first, *chosen)]

    async def round(self, preferred: frozenset[str] = frozenset()) -> bool:
        """Probes whose turn it is; True if a link went up or down."""
        limit = asyncio.Semaphore(_AT_ONCE)

        async def one(neighbour: Neighbour) -> bool:
            async with limit:
                seconds, why = await self._ask(neighbour)
            if self._neighbours.get(neighbour.id) is not neighbour:
                return False  # it changed meanwhile
            link = self._links.setdefault(neighbour.id, _Link(neighbour.endpoint))
            return link.note(seconds, why, self._clock.now())

        return any(await asyncio.gather(*(one(neighbour) for neighbour in self.turn(preferred))))

    async def _ask(self, neighbour: Neighbour) -> tuple[float | None, str]:
        try:
            async with asyncio.timeout(self._timeout + 1):
                return await self._probe(neighbour, self._timeout), ""
        except TimeoutError:
            return None, f"no answer within {self._timeout:g} s"
        except HansaError as error:
            return None, error.message
        except Exception as error:  # one that is hostile must not stop what we do for the others
            _log.exception("a cluster cannot be asked", cluster=neighbour.id)
            return None, f"it cannot be asked ({type(error).__name__})"

    def told(self, preferred: frozenset[str] = frozenset()) -> Sequence[LinkSeen]:
        """What the hub should know; of very many, those we talk to first."""
        order = sorted(self._links, key=lambda target: (target not in preferred, target))[:_MOST_TOLD]
        found = (self._links[target].seen(target) for target in sorted(order))
        return [one for one in found if one is not None]
