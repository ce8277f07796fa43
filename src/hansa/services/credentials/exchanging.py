"""From a refresh token to a fresh access token: once for all who ask, and never with a token that was replaced.

The order matters. That an exchange begins is written down before the issuer is asked, and its outcome before the access
token is used: a rotated refresh token that only lives in memory is lost with the process. What a crash between the
issuer's answer and that write costs is described in `docs/decisions/0003-tokens-in-a-mesh.md`.
"""

import asyncio
from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary

from hansa.kernel.clock import Clock
from hansa.kernel.errors import HansaError, Temporary
from hansa.services.credentials import issuers, lineage
from hansa.services.credentials.access import Access, FreshTokens
from hansa.services.credentials.errors import IssuerUnreachable, Misconfigured, TokenSpent
from hansa.services.credentials.lineage import Lineage, State
from hansa.services.credentials.ports import (
    Action,
    AuditEntry,
    ClientRefused,
    Exchanged,
    InvalidGrant,
    Lineages,
    OwnersIssuer,
    TokenExchange,
    Unreachable,
)

MANAGER = "manager"  # who exchanges when nobody asked for it by name
_NEW_TOKEN = "give the service a new environment.secrets.refresh_token"  # noqa: S105 - a hint
_PAUSES = (0.1, 0.5, 2.0)  # until a rotated token that could not be written down is tried again


@dataclass(frozen=True, slots=True)
class Given:
    """A refresh token as its owner gave it, and the service it is used for."""

    service: str
    owner: str
    token: str = field(repr=False)

    @property
    def mark(self) -> str:
        return lineage.mark(self.owner, self.token)


class Exchanging:
    def __init__(
        self,
        lineages: Lineages,
        exchange: TokenExchange,
        owners: OwnersIssuer,
        clock: Clock,
        *,
        skew: float,
        retry_pause: float,
    ) -> None:
        self._lineages = lineages
        self._exchange = exchange
        self._owners = owners
        self._clock = clock
        self._retry_pause = retry_pause
        self._fresh = FreshTokens(clock, skew)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._revoking: set[asyncio.Task[str]] = set()
        self._left_alone: dict[str, float] = {}  # until when an issuer that did not answer is not asked for a token
        self._unsaved: dict[str, tuple[Lineage, AuditEntry]] = {}  # the store was away when the issuer rotated

    async def fresh(self, given: Given, *, actor: str = MANAGER, anew: bool = False) -> Access:
        """An access token that lasts a while; raises `TokenSpent`, `IssuerUnreachable` or `Misconfigured`."""
        return await self._fresh.get(given.mark, lambda: self._renew(given, actor, anew), anew=anew)

    async def line(self, given: Given) -> Lineage:
        """What became of the token; raises `Misconfigured`."""
        kept = self._unsaved.get(given.mark)
        found = kept[0] if kept else await self._lineages.get(given.mark)
        if found is None:
            issuer = issuers.choose(self._exchange.issuers, self._owners.issuer_of(given.owner), given.token)
            return lineage.first(given.owner, given.token, issuer, self._clock.now())
        if found.issuer not in self._exchange.issuers and not found.spent:
            raise Misconfigured(
                f"the issuer {found.issuer} of the refresh token is not configured any more",
                hint="add it to oidc.issuers again, or " + _NEW_TOKEN,
            )
        return found

    async def rotates(self, given: Given) -> bool | None:
        """Whether the token's issuer was seen to replace refresh tokens, this one or another."""
        return await self._lineages.rotates((await self.line(given)).issuer)

    async def revoke(self, given: Given, actor: str) -> str:
        """The token is of no use to us any more, whatever its issuer says; returns what it said, as a sentence."""
        task = asyncio.create_task(self._revoke(given, actor), name=f"revoke the token of {given.service}")
        self._revoking.add(task)
        task.add_done_callback(self._revoking.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # seen, also if the caller has gone
        return await asyncio.shield(task)

    def known(self, given: Given) -> Access | None:
        return self._fresh.known(given.mark)

    async def close(self) -> None:
        """Waits for what is under way: it is bounded in time, and a token that was revoked must not be shown again."""
        await self._fresh.close()
        if self._revoking:
            await asyncio.wait(self._revoking)

    def _turn(self, mark: str) -> asyncio.Lock:
        return self._turns.setdefault(mark, asyncio.Lock())

    async def _renew(self, given: Given, actor: str, anew: bool) -> Access:
        turn = self._turn(given.mark)
        async with turn:
            await self._save_leftover(given.mark)
            line = await self.line(given)
            if line.spent:
                raise _spent(line)
            now = self._clock.now()
            if not anew and now < self._left_alone.get(given.mark, 0.0):
                raise _waiting(line, self._retry_pause)
            await self._lineages.save(replace(line, begun=line.begun or now))
            try:
                got = await self._exchange.exchange(line.issuer, line.token)
            except (InvalidGrant, Unreachable, ClientRefused) as failure:
                raise await self._failed(line, failure, given, actor) from None
            self._left_alone.pop(given.mark, None)
            await self._succeeded(line, got, given, actor, now)
            return Access(got.access_token, now + got.expires_in, got.expires_in)

    async def _succeeded(self, line: Lineage, got: Exchanged, given: Given, actor: str, now: float) -> None:
        successor = got.refresh_token if got.refresh_token and got.refresh_token != line.token else None
        after = replace(
            line,
            token=successor or line.token,
            obtained=now if successor else line.obtained,
            renewed=now,
            rotates=bool(successor) or line.rotates is True,
            state="ok",
            since=line.since if line.state == "ok" else now,
            reason="",
            begun=None,
        )
        action: Action = "token.rotated" if successor else "token.exchanged"
        self._unsaved[line.mark] = (after, self._entry(action, given, actor, f"with {line.issuer}"))
        for pause in _PAUSES:
            try:
                await self._save_leftover(line.mark)
                return
            except Temporary:
                await asyncio.sleep(pause)
        await self._save_leftover(line.mark)

    async def _save_leftover(self, mark: str) -> None:
        if (kept := self._unsaved.get(mark)) is not None:
            await self._lineages.save(*kept)
            del self._unsaved[mark]

    async def _failed(self, line: Lineage, failure: Exception, given: Given, actor: str) -> HansaError:
        """Writes down what went wrong and says it as an error; a state that lasts stands in the trail once."""
        now = self._clock.now()
        state: State
        action: Action
        if isinstance(failure, InvalidGrant):
            reason = "the issuer does not accept the refresh token any more"
            if line.begun is not None:
                reason += "; an earlier exchange ended without an answer we could keep, and may have replaced it"
            state, action, begun = "expired-or-revoked", "token.refused", None
        elif isinstance(failure, Unreachable):
            begun = (line.begun or now) if failure.asked else line.begun
            state, action, reason = "issuer-unreachable", "token.unreachable", failure.what
        else:
            assert isinstance(failure, ClientRefused)
            state, action, reason, begun = "misconfigured", "token.misconfigured", failure.what, line.begun
        self._left_alone = {mark: until for mark, until in self._left_alone.items() if until > now}
        self._left_alone[line.mark] = now + self._retry_pause
        since = line.since if line.state == state else now
        after = replace(line, state=state, since=since, reason=reason, begun=begun)
        news = self._entry(action, given, actor, reason) if line.state != state else None
        await self._lineages.save(after, news)
        if isinstance(failure, ClientRefused):
            return Misconfigured(reason, hint=failure.hint, issuer=line.issuer)
        return _spent(after) if after.spent else _waiting(after, self._retry_pause)

    async def _revoke(self, given: Given, actor: str) -> str:
        turn = self._turn(given.mark)
        async with turn:
            self._fresh.drop(given.mark)
            try:
                line = await self.line(given)
            except Misconfigured:
                line = lineage.first(given.owner, given.token, "", self._clock.now())
            told = await self._tell_issuer(line)
            after = replace(
                line,
                token="",
                state="expired-or-revoked",
                since=self._clock.now(),
                reason=f"revoked on request; {told}",
                begun=None,
            )
            await self._lineages.save(after, self._entry("token.revoked", given, actor, told))
            self._unsaved.pop(given.mark, None)
            return told

    async def _tell_issuer(self, line: Lineage) -> str:
        if not line.token:
            return "it was revoked before"
        if not line.issuer:
            return "its issuer is not configured here: revoke it there"
        try:
            if await self._exchange.revoke(line.issuer, line.token):
                return "its issuer revoked it"
            return "its issuer offers no revocation: it stays valid there until it expires or you end the session"
        except InvalidGrant:
            return "its issuer did not accept it any more"
        except (Unreachable, ClientRefused) as failure:
            return f"its issuer was not told ({failure.what}): revoke it there"

    def _entry(self, action: Action, given: Given, actor: str, detail: str) -> AuditEntry:
        return AuditEntry(self._clock.now(), actor, action, given.service, detail)


def _spent(line: Lineage) -> TokenSpent:
    return TokenSpent(f"the refresh token is of no use any more: {line.reason}", hint=_NEW_TOKEN, since=line.since)


def _waiting(line: Lineage, pause: float) -> HansaError:
    if line.state == "misconfigured":
        return Misconfigured(line.reason, hint="see oidc.issuers", issuer=line.issuer)
    return IssuerUnreachable(
        f"the issuer {line.issuer} cannot exchange the refresh token now: {line.reason}",
        hint="it is tried again by itself",
        retry_after=pause,
    )
