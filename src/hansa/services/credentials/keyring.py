"""What do we show to another cluster about a service? Best first, each for the case that the one before is refused.

1. an access token of the owner, from the service's refresh token; 2. the bearer token of the request under way;
3. the user and password that `clusters` gives for that cluster. A failed exchange blocks nobody: it is recorded as the
service's state, and the others are tried. Basic credentials of a caller are for this cluster and go nowhere else.
"""

import base64
from collections.abc import Mapping

import structlog

from hansa.identity import same_secret
from hansa.kernel.clock import Clock
from hansa.kernel.errors import HansaError
from hansa.services.credentials.access import Access
from hansa.services.credentials.borrowing import Borrowing, coordinator
from hansa.services.credentials.errors import GroupKeyRefused, NotCoordinator, NoToken
from hansa.services.credentials.exchanging import MANAGER, Exchanging, Given
from hansa.services.credentials.ports import (
    Action,
    AuditEntry,
    AuditTrail,
    Lineages,
    OwnersIssuer,
    TokenExchange,
)
from hansa.services.credentials.standing import Standing
from hansa.services.credentials.upkeep import KEY_PATH, TOKEN_PATH, Upkeep, borrows, given_in
from hansa.services.peers import Credentials, Peers
from hansa.services.ports import Services
from hansa.services.service import Service

_log = structlog.get_logger("hansa.credentials")
_SHORTEST_KEY = 32  # a group key that a person made up would be guessed
_REFUSALS_EVERY = 60.0  # seconds between two refusals of one service in the trail: strangers must not fill it
_NOBODY = "0" * 64


class Keyring:
    """One for each manager. `close` it before the store, so that exchanges under way are written down."""

    def __init__(
        self,
        *,
        records: Services,
        lineages: Lineages,
        exchange: TokenExchange,
        owners: OwnersIssuer,
        audit: AuditTrail,
        peers: Peers,
        clock: Clock,
        rotation_days: float = 30.0,
        skew: float = 30.0,
        retry_pause: float = 5.0,
    ) -> None:
        self._records = records
        self._audit = audit
        self._clock = clock
        self._exchanging = Exchanging(lineages, exchange, owners, clock, skew=skew, retry_pause=retry_pause)
        self._borrowing = Borrowing(peers, self._exchanging, audit, clock, skew=skew, retry_pause=retry_pause)
        self._upkeep = Upkeep(
            records, lineages, self._exchanging, self._borrowing, audit, clock, rotation_days=rotation_days
        )
        self._refused: dict[str, float] = {}

    async def credentials(self, service: Service, cluster_id: str, *, caller: str = "") -> list[Credentials]:
        return await self.offered(service, self._records.secrets(service.name), cluster_id, caller=caller)

    async def offered(
        self, service: Service, secrets: Mapping[str, str], cluster_id: str, *, caller: str = ""
    ) -> list[Credentials]:
        named = service.clusters.get(cluster_id)
        basic = _basic(named.auth_user if named else "", secrets.get(f"clusters.{cluster_id}.auth_password", ""))
        return _in_order(await self._quietly(service, secrets), caller, basic)

    async def keep(self, service: str, caller: str) -> Mapping[str, str]:
        record = self._records.get(service)
        if record is None:
            return {"caller": caller} if _may_travel(caller) else {}
        secrets = self._records.secrets(service)
        kept = {"service": service, "owner": record.service.owner, "refresh_token": secrets.get(TOKEN_PATH, "")}
        kept["caller"] = caller if _may_travel(caller) else ""
        for ident, cluster in record.service.clusters.items():
            if password := secrets.get(f"clusters.{ident}.auth_password", ""):
                kept[f"user {ident}"] = cluster.auth_user
                kept[f"password {ident}"] = password
        return {key: text for key, text in kept.items() if text}

    async def from_kept(self, kept: Mapping[str, str], cluster_id: str) -> list[Credentials]:
        service = Service(name=kept.get("service", ""), owner=kept.get("owner", ""))
        access = await self._quietly(service, {TOKEN_PATH: kept.get("refresh_token", "")})
        basic = _basic(kept.get(f"user {cluster_id}", ""), kept.get(f"password {cluster_id}", ""))
        return _in_order(access, kept.get("caller", ""), basic)

    async def token_for_member(self, service: str, group_key: str, *, asked_from: str = "") -> tuple[str, float]:
        """For a member of the service's federation: an access token of its owner, and when it expires. Says nothing
        about the service to whoever does not know the key."""
        record = self._records.get(service)
        secrets = self._records.secrets(service) if record is not None else {}
        expected = secrets.get(KEY_PATH, "")
        fits = same_secret(group_key, expected or _NOBODY)
        if record is None or not fits or len(expected) < _SHORTEST_KEY:
            if expected:
                await self._note_refusal(service, asked_from)
            raise GroupKeyRefused(
                "the group key is not accepted for this service",
                hint="update the federation at its coordinator: that brings the key to all members",
            )
        if borrows(record.service):
            raise NotCoordinator(
                f"{service} is a replica itself", hint=f"ask its coordinator {coordinator(record.service)}"
            )
        given = given_in(record.service, secrets.get(TOKEN_PATH, ""))
        if given is None:
            raise NoToken(f"service {service} has no refresh token (any more)", hint="its owner has to give a new one")
        access = await self._exchanging.fresh(given)
        await self._note("token.handed-out", service, f"to a member of its group at {asked_from or 'this machine'}")
        return access.token, access.expires

    async def standing(self, service: str) -> Standing:
        """How the service stands with its credentials."""
        return await self._upkeep.standing(service)

    async def rotate(self, service: str, *, actor: str = MANAGER) -> Standing:
        return await self._upkeep.rotate(service, actor)

    async def rotate_due(self) -> list[str]:
        return await self._upkeep.rotate_due()

    async def revoke(self, service: str, *, actor: str = MANAGER) -> Standing:
        return await self._upkeep.revoke(service, actor)

    async def history(self, service: str, *, most: int = 100) -> list[AuditEntry]:
        """Who touched the service's secret, newest first; not what happened to an earlier service of that name."""
        record = self._records.get(service)
        return list(await self._audit.of(service, since=record.created, most=most)) if record is not None else []

    async def forget_history(self, before: float, most: int) -> int:
        return await self._audit.forget(before, most)

    async def close(self) -> None:
        await self._borrowing.close()
        await self._exchanging.close()

    async def _quietly(self, service: Service, secrets: Mapping[str, str]) -> Access | None:
        """An access token, or None: why there is none stands in the service's state."""
        own = given_in(service, secrets.get(TOKEN_PATH, ""))
        try:
            return await self._access(service, own, secrets.get(KEY_PATH, ""))
        except HansaError as error:
            _log.warning("no access token", service=service.name, code=error.code, error=error.message)
            return None

    async def _access(self, service: Service, own: Given | None, group_key: str) -> Access | None:
        if borrows(service):
            return await self._borrowing.fresh(service, group_key, own) if own or group_key else None
        return await self._exchanging.fresh(own) if own else None

    async def _note_refusal(self, service: str, asked_from: str) -> None:
        now = self._clock.now()
        _log.warning("group key refused", service=service, asked_from=asked_from)
        if now >= self._refused.get(service, 0.0):
            self._refused[service] = now + _REFUSALS_EVERY
            await self._note("token.hand-out-refused", service, f"wrong group key from {asked_from or 'this machine'}")

    async def _note(self, action: Action, service: str, detail: str) -> None:
        await self._audit.note(AuditEntry(self._clock.now(), MANAGER, action, service, detail))


def _in_order(access: Access | None, caller: str, basic: str) -> list[Credentials]:
    headers = [access.authorization if access else "", caller if _may_travel(caller) else "", basic]
    return [Credentials(header) for header in dict.fromkeys(headers) if header]


def _may_travel(header: str) -> bool:
    """A bearer token says who somebody is everywhere; Basic is this cluster's own password."""
    return header.strip().lower().startswith("bearer ")


def _basic(user: str, password: str) -> str:
    if not user or not password:
        return ""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
