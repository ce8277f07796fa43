"""The conversation with the hub, for as long as there is one: heartbeats, what the hub wants, the certificate, links.

Each is a loop of its own that survives the hub's absence; `beat`, `look`, `tend` and `finish` are one turn of each.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import msgspec
import structlog

from hansa.federation.errors import CertificateExpired, CertificateRefused, NotAMember, WasRemoved
from hansa.federation.member.beats import Beats, Numbers
from hansa.federation.member.links import Links
from hansa.federation.member.notebook import Notebook
from hansa.federation.member.pacing import Pace
from hansa.federation.member.ports import Cluster, Line, Progress, Reports
from hansa.federation.member.renewal import Renewal
from hansa.federation.member.watching import Watch
from hansa.kernel.clock import Clock
from hansa.kernel.errors import HansaError
from hansa.messages.members import Desired, Health, Heard

T = TypeVar("T")
_log = structlog.get_logger("hansa.membership")
_EVERY = 5.0  # seconds, until the hub has said
_LEAST_GAP = 0.25  # between two heartbeats, however much happens
_WAIT = 30.0  # seconds a question for news stays open
_MOST_REPORTS = 200  # in one heartbeat
_TEND_EVERY, _RETRY_EVERY = 10.0, 1.0
_LEAVE_EVERY = 1.0
_LINGER = 4  # turns: those whose jobs ran here ask how they ended, which nobody may any more who is no member
_SLOWEST = 3600.0
_PATIENCE = 2.0  # seconds for our own parts: a heartbeat that waits for a sick one is taken for a dead cluster
_SILENT_PARTS = (f"its parts do not say within {_PATIENCE:g} s how they are",)
_BEHIND = 60.0  # seconds a hub may be behind what we know of it before we take it for one that was restored


class Session:
    def __init__(
        self,
        *,
        line: Line,
        cluster: Cluster,
        clock: Clock,
        reports: Reports,
        watch: Watch,
        links: Links,
        notebook: Notebook,
        probe_every: float,
        on_beat: Callable[[bool], None],
    ) -> None:
        self._line = line
        self._cluster = cluster
        self._clock = clock
        self._reports = reports
        self._watch = watch
        self._links = links
        self._notebook = notebook
        self.probe_every = probe_every
        self._on_beat = on_beat
        self._beats = Beats()
        self._numbers: Numbers | None = None
        self._mark = _new_mark()
        self._pace = Pace(_EVERY)
        self._watch_pace = Pace(_EVERY)
        self._renewal = Renewal()
        self._soon = asyncio.Event()  # something the hub should know now
        self._news = asyncio.Event()  # the hub has something newer than we do
        self._renew = asyncio.Event()
        self._behind_since: float | None = None
        self._progress = Progress(0, 0)
        self._drained = 0  # turns in a row without work
        self.last_answer: float | None = None
        self.seen_as: str | None = None
        self.trouble = ""

    @property
    def every(self) -> float:
        return self._pace.every

    def start_over(self, every: float) -> None:
        """A new life: the hub knows nothing of us, nor we of it."""
        self._beats.start_over()
        self._watch.start_over()
        self._pace, self._watch_pace, self._renewal = Pace(every), Pace(every), Renewal()
        self._behind_since, self.trouble, self.seen_as = None, "", None

    async def run(self) -> str:
        """Until cancelled, or until this cluster has left; then why it did."""
        self._beats.start_over()
        self._mark = _new_mark()
        async with asyncio.TaskGroup() as loops:
            others = [
                loops.create_task(loop(), name=f"membership {name}")
                for name, loop in {
                    "heartbeats": self._heartbeats,
                    "watch": self._watching,
                    "certificate": self._tending,
                    "links": self._probing,
                }.items()
            ]
            reason = await self._leaving()
            for other in others:
                other.cancel()
        return reason

    # Heartbeats.

    async def _heartbeats(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            self._soon.clear()
            heard = await _in_spite_of(self.beat())
            if heard is not None:
                pause = max(_LEAST_GAP, began + self.every - loop.time())
                await asyncio.sleep(_LEAST_GAP)
                await _until(self._soon, pause - _LEAST_GAP)
            elif self._notebook.now.standing == "removed":
                await asyncio.sleep(self._pace.removed())
            else:
                await asyncio.sleep(self._pace.failed())

    async def beat(self) -> Heard | None:
        """One heartbeat and what its answer means; None if there was none."""
        reports = await _or(self._reports.oldest(_MOST_REPORTS), ())
        sections = await self._sections()
        try:
            number = await self._number()
            beat = self._beats.make(number, self._notebook.now.incarnation, sections, reports, run=self._mark)
            heard = await self._line.heartbeat(beat)
        except HansaError as error:
            self._on_beat(False)
            await self._unanswered(error)
            return None
        self._on_beat(True)
        self._beats.answered(beat, heard)
        await self._answered(heard)
        if reports and heard.received:  # of those that were not sent the hub cannot have any
            await _or(self._reports.forget(min(heard.received, reports[-1].number)), None)
        if len(reports) == _MOST_REPORTS and heard.received >= reports[-1].number:
            self._soon.set()  # there are more
        return heard

    async def _answered(self, heard: Heard) -> None:
        if self.trouble:
            _log.info("the hub answers again")
        self._pace.answered()
        self._pace.every = self._watch_pace.every = min(_SLOWEST, max(_LEAST_GAP, heard.every))
        self.last_answer, self.trouble, self.seen_as = self._clock.now(), "", heard.state
        await self._stand(heard.state)
        if heard.desired > self._watch.generation:
            self._news.set()
            self._behind_since = None
        elif heard.desired == self._watch.generation:
            self._behind_since = None
        elif self._behind_since is None:
            self._behind_since = self._clock.now()  # one of several hubs may lag for a moment
        elif not 0 <= self._clock.now() - self._behind_since < _BEHIND:
            self._watch.start_over()
            self._news.set()
            self._behind_since = None

    async def _stand(self, seen_as: str) -> None:
        standing = self._notebook.now.standing
        if seen_as == "pending" and standing != "pending":
            await self._note("pending", "the hub has yet to approve it")
        elif seen_as != "pending" and standing != "member":
            was_removed = standing == "removed"
            await self._note("member", "the hub takes it for a member again" if was_removed else "the hub approved it")
            self._watch.start_over()  # who is no member is told nothing of the others
            self._news.set()

    async def _unanswered(self, error: HansaError) -> None:
        if error.message != self.trouble:
            _log.warning("the hub does not hear us", error=error.message)
        self.trouble = error.message
        if isinstance(error, CertificateExpired):
            self._renew.set()  # it may still be renewed for a while
        elif isinstance(error, WasRemoved | NotAMember | CertificateRefused):
            await self._let_go(error.message)

    async def _let_go(self, why: str) -> None:
        if self._notebook.now.standing == "removed":
            return
        self.seen_as = None
        self._beats.start_over()
        await self._note("removed", why)
        await self._watch.let_go()

    async def _number(self) -> int:
        if self._numbers is None:
            self._numbers = Numbers(self._clock.now(), self._notebook.now.numbers)
        number = self._numbers.take()
        await self._notebook.change(numbers=self._numbers.reserved)
        return number

    async def _sections(self) -> Mapping[str, bytes]:
        told: dict[str, object] = dict(await self._cluster.sections())
        missing = list(await _or(self._cluster.missing(), _SILENT_PARTS))
        held = self._line.held()
        worry = self._renewal.worry(held, self._clock.now()) if held is not None else ""
        if self._watch.draining:
            self._progress = await _or(self._cluster.progress(), self._progress)
        told["health"] = Health(missing=tuple([*missing, worry] if worry else missing))
        told["applied"] = self._watch.applied(self._progress)
        sections = {name: msgspec.json.encode(part) for name, part in told.items()}
        sections["links"] = msgspec.json.encode(self._links.told(self._cluster.talks_to()))
        return sections

    # Reports.

    async def report(self, kind: str, detail: str) -> None:
        try:
            await self._reports.add(self._clock.now(), kind, detail)
        except HansaError as error:
            _log.warning("a report is lost", kind=kind, detail=detail, error=error.message)
        self._soon.set()

    async def reports_counted(self) -> tuple[int, int]:
        return await self._reports.counts()

    async def forget_reports(self) -> None:
        self.trouble, self.seen_as = "", None
        await self._reports.clear()

    # What the hub wants.

    async def _watching(self) -> None:
        while True:
            if self._notebook.now.standing == "removed":
                self._news.clear()
                await self._news.wait()
            answered = await self.look(_WAIT)
            pace = self._watch_pace
            await asyncio.sleep(pace.pause(asyncio.get_running_loop().time()) if answered else pace.failed())

    async def look(self, wait: float) -> bool:
        """Asks for what is newer, and does it; False if the hub could not be asked."""
        self._news.clear()
        try:
            told, asked_in = await self._ask(wait)
            if told is not None:
                error = self._watch.error
                if await self._watch.take(told, asked_in):
                    self._soon.set()
                if told.renew:
                    self._renew.set()
                if self._watch.error and self._watch.error != error:
                    await self.report("config-refused", self._watch.error)
            elif await self._watch.try_again():
                self._soon.set()
        except HansaError as error:
            if not self._watch_pace.failing:
                _log.info("the hub cannot be asked for news", error=error.message)
            return False
        self._watch_pace.answered()
        return True

    async def _ask(self, wait: float) -> tuple[Desired | None, int]:
        """The answer, and in which round it was asked for. A heartbeat's answer may tell of news on another way while
        the question is stuck: then it is asked anew."""
        asked_in = self._watch.round
        asking = asyncio.create_task(self._line.desired(self._watch.generation, wait), name="membership question")
        hint = asyncio.create_task(self._news.wait(), name="membership hint")
        try:
            await asyncio.wait({asking, hint}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                await asyncio.wait({asking}, timeout=self._pace.every / 2)
            if asking.done():
                return asking.result(), asked_in
            asked_in = self._watch.round
            return await self._line.desired(self._watch.generation, 0), asked_in
        finally:
            for task in (asking, hint):
                task.cancel()
            await asyncio.gather(asking, hint, return_exceptions=True)

    # The certificate.

    async def _tending(self) -> None:
        while True:
            await _in_spite_of(self.tend())
            if self._renew.is_set():
                await asyncio.sleep(_RETRY_EVERY)  # it failed; when it is tried again, `renewal` knows
            else:
                await _until(self._renew, _TEND_EVERY)

    async def tend(self) -> None:
        """Renews the certificate if it is time."""
        told, now = self._renew.is_set(), self._clock.now()
        held = self._line.held()
        if held is None or self._notebook.now.standing == "removed" or not self._renewal.due(held, now, told=told):
            return
        try:
            await self._line.renew()
        except HansaError as error:
            if isinstance(error, CertificateExpired):  # it was away for too long
                self._renew.clear()
                await self._let_go(error.message)
                return
            self._renewal.failed(held, now, error.message)
            _log.warning("the certificate is not renewed", error=error.message)
            return
        self._renew.clear()
        self._renewal.renewed()
        await self.report("certificate-renewed", "as the hub asked" if told else "after half its life")

    # Links and leaving.

    async def _probing(self) -> None:
        while True:
            if await self._links.round(self._cluster.talks_to()):
                self._soon.set()
            await asyncio.sleep(self.probe_every)

    async def _leaving(self) -> str:
        while True:
            await asyncio.sleep(_LEAVE_EVERY)
            reason = await _in_spite_of(self.finish())
            if reason:
                return reason

    async def finish(self) -> str:
        """Tells the hub of a drain's progress at once; says goodbye when it is over, and then why."""
        kept = self._notebook.now
        if not self._watch.draining:
            self._drained = 0
            return ""
        progress = await self._cluster.progress()
        if progress != self._progress:
            self._soon.set()
        if progress.over and not self._drained:
            await self.report("drained", "nothing of it runs any more")
        self._drained = self._drained + 1 if progress.over else 0
        told = kept.desired
        if self._drained < _LINGER or not (kept.leaving or (told is not None and told.leave)):
            return ""
        try:
            await self.say_goodbye()
        except (WasRemoved, NotAMember):
            pass  # what we wanted
        except HansaError as error:
            self.trouble = error.message
            return ""
        return "its own admin asked for it" if kept.leaving else "the hub's admin asked for it"

    async def say_goodbye(self) -> None:
        await self._line.leave(self._mark)

    async def _note(self, standing: str, reason: str) -> None:
        await self._notebook.change(standing=standing, reason=reason, since=self._clock.now())


def _new_mark() -> str:
    """Of this conversation, kept in memory only: who has a copy of our key does not know it, and the hub notices."""
    return secrets.token_hex(8)


async def _or(answer: Awaitable[T], otherwise: T) -> T:
    """What one of our own parts says, if it says it in time."""
    try:
        async with asyncio.timeout(_PATIENCE):
            return await answer
    except (TimeoutError, HansaError):
        return otherwise


async def _in_spite_of(turn: Awaitable[T]) -> T | None:
    """One turn of a loop: what our own database refuses now is done by a later one."""
    try:
        return await turn
    except HansaError as error:
        _log.warning("not done yet", error=error.message)
        return None


async def _until(event: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, seconds)):
            await event.wait()
