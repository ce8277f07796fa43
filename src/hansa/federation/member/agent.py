"""Does this manager belong to a federation, and how does it stand with its hub?

            join                     approved
  none ───► joining ───► pending ───────────► member ───► leaving ───► left
              ▲                                  │                       │
              └───────────── join again ──── removed ◄── the hub says so ┘ (join again)

`Membership` is what the doors and `bootstrap` see; `session.py` keeps the conversation going while there is a hub to
talk to. Whatever happens here, the manager serves its users.
"""

import asyncio
import hashlib
from collections.abc import Callable
from urllib.parse import urlsplit

import structlog

from hansa.federation.errors import BadToken
from hansa.federation.member import pacing
from hansa.federation.member.errors import AlreadyMember, BadHub, JoinRefused, NoMember
from hansa.federation.member.links import Links
from hansa.federation.member.notebook import Notebook
from hansa.federation.member.ports import Cluster, Line, Memory, Probe, Progress, Reports
from hansa.federation.member.session import Session
from hansa.federation.member.watching import Watch
from hansa.kernel.clock import Clock
from hansa.kernel.errors import HansaError, Temporary
from hansa.kernel.hub import MembershipSettings
from hansa.messages.membership import Membership as Shown
from hansa.messages.membership import Standing

_log = structlog.get_logger("hansa.membership")
_FORCED = 5.0  # seconds for a goodbye that may fail
_HINTS = {
    "none": "join a federation with `hansa cluster join <hub> --token …`",
    "removed": "return with a new token: `hansa cluster join <hub> --token …`",
    "left": "join again with a new token: `hansa cluster join <hub> --token …`",
    "pending": "an admin of the hub can let it in: `hansa cluster approve <id>`",
}


class Membership:
    """One per manager. `work` runs all the time."""

    def __init__(
        self,
        ident: str,
        given: MembershipSettings,
        *,
        line: Line,
        memory: Memory,
        reports: Reports,
        cluster: Cluster,
        probe: Probe,
        clock: Clock,
        on_beat: Callable[[bool], None] = lambda answered: None,
    ) -> None:
        self.ident = ident
        self._given = given
        self._line = line
        self._cluster = cluster
        self._clock = clock
        self._notebook = Notebook(memory)
        self._links = Links(probe, clock)
        self._watch = Watch(line, cluster, self._links, self._notebook)
        self._changed = asyncio.Event()
        self._turn = asyncio.Lock()
        self._joining = False
        self._talking: asyncio.Task[str] | None = None
        self._session = Session(
            line=line,
            cluster=cluster,
            clock=clock,
            reports=reports,
            watch=self._watch,
            links=self._links,
            notebook=self._notebook,
            probe_every=given.link_probe_every,
            on_beat=on_beat,
        )

    @property
    def state(self) -> Standing:
        if self._joining:
            return "joining"
        kept = self._notebook.now
        told = kept.desired
        if kept.standing in ("member", "pending") and (kept.leaving or (told is not None and told.leave)):
            return "leaving"
        return kept.standing

    @property
    def last_answer(self) -> float | None:
        return self._session.last_answer

    async def open(self) -> None:
        """Before the manager serves: what was in force is in force again. Needs no hub."""
        await self._notebook.load()
        held, kept = self._line.held(), self._notebook.now
        if held is not None and kept.standing in ("none", "left"):
            # a crash came between the credentials and our note of them
            await self._note("member", "it joined", hub=held.hub, incarnation=held.incarnation)
        elif held is None and kept.standing in ("member", "pending", "removed"):
            await self._note("left", "its credentials are gone from this machine")
        if self._belongs():
            await self._follow_the_hub()
            await self._watch.restore()
            await self.report("started", f"version {self._cluster.facts().version}")

    async def _follow_the_hub(self) -> None:
        """A hub that moved is in the settings; whether it is the same one is seen by its certificate."""
        if self._given.hub and (where := _address(self._given.hub)) != self._notebook.now.hub:
            await self._line.move(where)
            await self._notebook.change(hub=where)

    async def report(self, kind: str, detail: str = "") -> None:
        """Something the hub should hear of, now or when it is back."""
        if self._belongs():
            await self._session.report(kind, detail)

    async def join(self, hub: str, token: str) -> None:
        """Returns when the hub has signed a certificate for this cluster, which may still wait for approval."""
        where = _address(hub)
        async with self._turn:
            if self._belongs() and self._notebook.now.standing != "removed":
                raise AlreadyMember(
                    f"{self.ident} belongs to the federation of {self._notebook.now.hub}",
                    hint="leave it first: `hansa cluster leave`",
                )
            self._joining = True
            await self._hush()
            try:
                await self._join(where, token)
            finally:
                self._joining = False
        self._changed.set()

    async def _join(self, hub: str, token: str) -> None:
        try:
            joined = await self._line.join(hub, token, self.ident, self._cluster.facts())
        except Temporary:
            raise
        except HansaError as error:
            await self._notebook.change(token_mark=_mark(token))
            kind = "the token is not good" if isinstance(error, BadToken) else "the hub refused"
            raise JoinRefused(f"{kind}: {error.message}", hint=error.hint, problem=error.code) from error
        await self._watch.let_go()  # nothing of a former life
        waits = joined.state == "pending"
        await self._note(
            "pending" if waits else "member",
            "the hub has yet to approve it" if waits else "it joined",
            hub=hub,
            incarnation=joined.incarnation,
            token_mark=_mark(token),
        )
        self._session.start_over(joined.heartbeat_every)
        await self.report("joined", f"version {self._cluster.facts().version}")
        _log.info("joined a federation", hub=hub, state=joined.state, incarnation=joined.incarnation)

    async def leave(self, *, force: bool = False) -> None:
        """Gracefully: drains, and leaves when nothing runs any more. By force: forgets the hub now."""
        async with self._turn:
            if not self._belongs():
                raise NoMember(f"{self.ident} belongs to no federation", hint=_HINTS["none"])
            if not force and self._notebook.now.standing != "removed":
                await self._notebook.change(leaving=True)
                self._watch.take_duty()
                await self.report("leaving", "its own admin asked for it")
                return
            await self._hush()
            try:
                async with asyncio.timeout(_FORCED):
                    await self._session.say_goodbye()
                words = "its admin made it leave at once"
            except (TimeoutError, HansaError):
                words = "its admin made it leave at once; the hub could not be told"
            await self._part(words)
        self._changed.set()

    def adopt(self, given: MembershipSettings) -> None:
        """Settings that changed while the manager runs."""
        self._session.probe_every = given.link_probe_every

    async def work(self) -> None:
        """Until cancelled."""
        joining = asyncio.create_task(self._join_by_itself(), name="membership by settings")
        try:
            while True:
                self._changed.clear()
                async with self._turn:
                    if self._belongs():
                        self._talking = asyncio.create_task(self._session.run(), name="membership session")
                if self._talking is None:
                    await self._changed.wait()
                else:
                    await self._until_it_ends(self._talking)
        finally:
            joining.cancel()
            await self._hush()
            await asyncio.gather(joining, return_exceptions=True)

    async def _until_it_ends(self, talking: asyncio.Task[str]) -> None:
        await asyncio.wait({talking})
        async with self._turn:
            self._talking = None
            if not talking.cancelled():  # otherwise somebody joins or leaves here
                await self._part(talking.result())

    async def _hush(self) -> None:
        """No word to the hub, or from it, after this."""
        talking = self._talking
        if talking is not None:
            talking.cancel()
            await asyncio.wait({talking})

    async def _part(self, reason: str) -> None:
        await self._line.forget()
        await self._watch.let_go()
        await self._session.forget_reports()
        await self._note("left", reason, incarnation=0)
        _log.info("left the federation", reason=reason)

    async def _join_by_itself(self) -> None:
        """As the settings say, if that was not done before."""
        hub, token = self._given.hub, self._given.token.get_secret_value()
        if not hub or not token:
            return
        pace = pacing.Pace(5.0)
        while not self._belongs() or self._notebook.now.standing == "removed":
            if self._notebook.now.token_mark == _mark(token):
                return
            try:
                await self.join(hub, token)
            except AlreadyMember:
                return
            except Temporary as error:
                self._session.trouble = error.message
                _log.warning("the hub cannot be joined yet", hub=hub, error=error.message)
                await asyncio.sleep(pace.failed())
            except HansaError as error:
                _log.error("the hub did not let this cluster in", hub=hub, error=error.message, hint=error.hint)
                await self._notebook.change(reason=error.message)
                return

    def _belongs(self) -> bool:
        return self._notebook.now.standing in ("member", "pending", "removed")

    async def _note(self, standing: Standing, reason: str, **more: object) -> None:
        await self._notebook.change(standing=standing, reason=reason, since=self._clock.now(), **more)

    async def shown(self) -> Shown:
        kept, state = self._notebook.now, self.state
        held = self._line.held()
        progress = await self._cluster.progress() if self._watch.draining else Progress(0, 0)
        waiting, dropped = await self._session.reports_counted()
        told = kept.desired
        return Shown(
            cluster=self.ident,
            state=state,
            since=kept.since,
            reason=kept.reason,
            hint=_HINTS.get(state, ""),
            hub=kept.hub,
            seen_as=self._session.seen_as,
            answered=self._session.last_answer,
            trouble=self._session.trouble,
            every=self._session.every if self._belongs() else 0.0,
            certificate_until=held.until if held is not None else None,
            cordoned=self._watch.cordoned,
            draining=self._watch.draining,
            drained=self._watch.draining and progress.over,
            running=progress.running,
            waiting=progress.waiting,
            generation=self._watch.generation,
            settings=dict(kept.settings),
            documents=kept.documents,
            error=self._watch.error,
            neighbours=told.neighbours if told is not None else (),
            links=tuple(self._links.told()),
            reports_waiting=waiting,
            reports_dropped=dropped,
        )


def _address(hub: str) -> str:
    try:
        parts = urlsplit(hub)
        fits = parts.scheme == "https" and bool(parts.hostname) and "@" not in parts.netloc and parts.port != 0
    except ValueError:
        fits = False
    if not fits or len(hub) > 2048 or parts.query or parts.fragment or parts.path not in ("", "/"):
        raise BadHub(
            f"{hub[:100]!r} is not the address of a hub",
            hint="give where managers reach it, as https://hub.example.org:7443",
        )
    return hub.rstrip("/")


def _mark(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()[:16]
