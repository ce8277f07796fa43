"""What this subject needs from the outside: an issuer to ask (`drivers/oidc`), a memory and a trail (`store`)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from hansa.services.credentials.lineage import Lineage


class InvalidGrant(Exception):
    """The issuer does not accept the refresh token, now or ever again."""


class Unreachable(Exception):
    """The issuer gave no usable answer. `asked`: it may have got the refresh token, and replaced it."""

    def __init__(self, what: str, *, asked: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.asked = asked


class ClientRefused(Exception):
    """The issuer, or our settings for it, do not let this manager exchange tokens."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What a refresh token was exchanged for."""

    access_token: str = field(repr=False)
    expires_in: float  # seconds
    refresh_token: str | None = field(repr=False)  # the one that takes the place of the old; None: it stays


class TokenExchange(Protocol):
    """The configured issuers, and nobody else. Calls raise `InvalidGrant`, `Unreachable` or `ClientRefused`; all are
    bounded in time."""

    @property
    def issuers(self) -> Sequence[str]: ...

    async def exchange(self, issuer: str, refresh_token: str) -> Exchanged: ...

    async def revoke(self, issuer: str, refresh_token: str) -> bool:
        """False if the issuer offers no revocation."""
        ...


Action = Literal[
    "token.exchanged",  # for an access token; the refresh token stays
    "token.rotated",  # for an access token and a new refresh token
    "token.refused",  # the issuer does not accept it any more
    "token.unreachable",  # the issuer did not answer
    "token.misconfigured",
    "token.handed-out",  # an access token went to a member of the group
    "token.hand-out-refused",
    "token.borrowed",  # an access token came from the coordinator
    "token.revoked",
]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Who touched a secret, never the secret."""

    at: float
    actor: str
    action: Action
    subject: str  # the service
    detail: str = ""


class AuditTrail(Protocol):
    async def note(self, entry: AuditEntry) -> None:
        """Durable when it returns."""
        ...

    async def of(self, subject: str, *, since: float = 0.0, most: int = 100) -> Sequence[AuditEntry]:
        """The latest, newest first."""
        ...

    async def forget(self, before: float, most: int) -> int:
        """Drops what is older than that, at most so many; returns how many."""
        ...


class Lineages(Protocol):
    """Where refresh tokens and their successors are remembered, sealed."""

    async def get(self, mark: str) -> Lineage | None: ...

    async def save(self, lineage: Lineage, entry: AuditEntry | None = None) -> None:
        """Durable, with its entry in the trail, when it returns; saving the same twice is harmless."""
        ...

    async def rotates(self, issuer: str) -> bool | None:
        """Whether the issuer was seen to replace refresh tokens: ever, never, or nothing was seen yet."""
        ...

    async def forget(self, before: float, still_used: frozenset[str]) -> None:
        """Drops what was last used before that time, except these."""
        ...


class OwnersIssuer(Protocol):
    def issuer_of(self, uid: str) -> str:
        """With whom this user signed in; "" for the admin and for somebody unknown."""
        ...
