"""A replica's access tokens come from its coordinator: one keeper of the refresh token, so nobody burns another's.

The replica shows the group key, which only the managers of the federation know. Its own copy of the refresh token (a
mesh gives one to every member, as OSCAR does) is used only while the coordinator cannot be asked, and only if the
issuer was seen not to replace refresh tokens.
"""

from dataclasses import dataclass, replace

import structlog

from hansa.kernel.clock import Clock
from hansa.kernel.errors import HansaError
from hansa.services.credentials.access import Access, FreshTokens
from hansa.services.credentials.errors import IssuerUnreachable, Misconfigured, TokenSpent
from hansa.services.credentials.exchanging import MANAGER, Exchanging, Given
from hansa.services.credentials.lineage import State, mark
from hansa.services.credentials.ports import AuditEntry, AuditTrail
from hansa.services.peers import PeerRefused, Peers, PeerUnreachable
from hansa.services.service import ORIGIN_CLUSTER, ORIGIN_SERVICE, Service

_log = structlog.get_logger("hansa.credentials")
_NO_SUCH_ROUTE = (404, 405, 501)  # OSCAR's own manager hands out no tokens


@dataclass(frozen=True, slots=True)
class Heard:
    """How asking the coordinator went last."""

    state: State
    since: float
    reason: str
    until: float = 0.0  # it is left alone until then


class Borrowing:
    def __init__(
        self,
        peers: Peers,
        exchanging: Exchanging,
        audit: AuditTrail,
        clock: Clock,
        *,
        skew: float,
        retry_pause: float,
    ) -> None:
        self._peers = peers
        self._exchanging = exchanging
        self._audit = audit
        self._clock = clock
        self._retry_pause = retry_pause
        self._fresh = FreshTokens(clock, skew)
        self._heard: dict[str, Heard] = {}

    async def fresh(self, replica: Service, group_key: str, own: Given | None) -> Access:
        """An access token of the group; `own` is the replica's copy of the refresh token, if it has one."""
        return await self._fresh.get(_key(replica, group_key), lambda: self._borrow(replica, group_key, own))

    def known(self, replica: Service, group_key: str) -> Access | None:
        return self._fresh.known(_key(replica, group_key))

    def heard(self, replica: Service) -> Heard | None:
        return self._heard.get(replica.name)

    async def close(self) -> None:
        await self._fresh.close()

    async def _borrow(self, replica: Service, group_key: str, own: Given | None) -> Access:
        try:
            access = await self._ask(replica, group_key)
        except IssuerUnreachable as error:
            if own is None or await self._exchanging.rotates(own) is not False:
                raise
            _log.info("own copy of the token used", service=replica.name, why=error.message)
            return await self._exchanging.fresh(own)
        self._hear(replica, "ok", "")
        detail = f"from {coordinator(replica)}"
        await self._audit.note(AuditEntry(self._clock.now(), MANAGER, "token.borrowed", replica.name, detail))
        return access

    async def _ask(self, replica: Service, group_key: str) -> Access:
        now = self._clock.now()
        last = self._heard.get(replica.name)
        if last is not None and now < last.until:
            raise self._error(last)
        origin = replica.annotations.get(ORIGIN_CLUSTER, "")
        named = replica.clusters.get(origin)
        try:
            peer = self._peers.find(origin, named.endpoint if named else "")
            if not group_key:
                raise PeerRefused("it gave this replica no group key", status=_NO_SUCH_ROUTE[0])
            token, expires = await peer.fresh_token(replica.annotations.get(ORIGIN_SERVICE, ""), group_key)
        except PeerUnreachable as error:
            raise self._failed(replica, "issuer-unreachable", error) from None
        except PeerRefused as error:
            if error.status in _NO_SUCH_ROUTE or error.status >= 500:
                raise self._failed(replica, "issuer-unreachable", error) from None
            state: State = "expired-or-revoked" if error.status == 409 else "misconfigured"
            raise self._failed(replica, state, error) from None
        except HansaError as error:  # a cluster we were not told to trust
            raise self._failed(replica, "misconfigured", error) from None
        return Access(token, expires, max(0.0, expires - now))

    def _failed(self, replica: Service, state: State, error: HansaError) -> HansaError:
        reason = f"the coordinator {coordinator(replica)} gave no access token: {error.message}"
        heard = self._hear(replica, state, reason)
        self._heard[replica.name] = replace(heard, until=self._clock.now() + self._retry_pause)
        return self._error(heard)

    def _hear(self, replica: Service, state: State, reason: str) -> Heard:
        last = self._heard.get(replica.name)
        since = last.since if last is not None and last.state == state else self._clock.now()
        self._heard[replica.name] = Heard(state, since, reason)
        return self._heard[replica.name]

    def _error(self, heard: Heard) -> HansaError:
        if heard.state == "issuer-unreachable":
            return IssuerUnreachable(heard.reason, hint="it is asked again by itself", retry_after=self._retry_pause)
        if heard.state == "expired-or-revoked":
            return TokenSpent(heard.reason, hint="give the coordinator's service a new refresh token")
        return Misconfigured(heard.reason, hint="update the federation at its coordinator")


def coordinator(replica: Service) -> str:
    return f"{replica.annotations.get(ORIGIN_CLUSTER, '')}/{replica.annotations.get(ORIGIN_SERVICE, '')}"


def _key(replica: Service, group_key: str) -> str:
    """Another key, or another coordinator, is another group."""
    return f"{replica.name} {coordinator(replica)} {mark('', group_key)}"
