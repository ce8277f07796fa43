"""One refresh token and what became of it. Pure.

An issuer that rotates gives a new refresh token at each use and never accepts the old one again; presenting an old one
makes it revoke all of them. So the token a user gave is only the first of a line. The line is found by who owns it and
which token was given, so that all services of one owner with the same token share it, as do operations that were begun
with it. The owner is part of the mark: a token that leaked after its use leads nobody else to its successor.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Literal

State = Literal["ok", "expired-or-revoked", "issuer-unreachable", "misconfigured", "none"]


@dataclass(frozen=True, slots=True)
class Lineage:
    mark: str
    issuer: str
    token: str = field(repr=False)  # the one to use now; "" once it was revoked
    obtained: float  # when that one came
    renewed: float  # when it was last exchanged; 0.0 never
    rotates: bool | None  # whether the issuer was seen to replace it
    state: State
    since: float
    reason: str = ""
    begun: float | None = None  # an exchange whose outcome we never learned

    @property
    def spent(self) -> bool:
        """No exchange is tried any more: another token has to be given."""
        return self.state == "expired-or-revoked"


def mark(owner: str, token: str) -> str:
    """What stands for a line in the database: it cannot be turned back into the token."""
    return hashlib.sha256(b"\0".join((owner.encode(), token.encode("utf-8", "surrogatepass")))).hexdigest()


def first(owner: str, token: str, issuer: str, now: float) -> Lineage:
    """The line of a token nobody used yet."""
    return Lineage(
        mark=mark(owner, token),
        issuer=issuer,
        token=token,
        obtained=now,
        renewed=0.0,
        rotates=None,
        state="ok",
        since=now,
    )
