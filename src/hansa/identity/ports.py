"""What sign-in needs from the outside: somebody who can tell a good token from a bad one (`drivers/oidc`)."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Identity:
    """What a verified token says about its bearer."""

    subject: str
    issuer: str
    name: str
    groups: frozenset[str]
    expires: float  # seconds since the epoch


class TokenVerifier(Protocol):
    async def verify(self, token: str) -> Identity:
        """Whose token it is. Raises the errors of `identity.errors`, bounded in time and size."""
        ...
