"""Roots of trust, as members and people see them."""

from typing import Annotated

from hansa.messages import Message, known

AnyRootState = Annotated[str, known(("next", "active", "retiring", "gone"))]


class Roots(Message, frozen=True, kw_only=True):
    """What anybody may read: the roots the hub's certificates are of. To be believed only if they are known by their
    fingerprint."""

    trust_domain: str
    roots: str  # PEM


class RootState(Message, frozen=True, kw_only=True):
    """One root of trust."""

    id: str
    state: AnyRootState
    since: float  # when it got into this state
    until: float  # when it expires
    fingerprint: str
    certificate: str  # PEM
    holders: int  # clusters whose certificate is of it


class AuthorityState(Message, frozen=True, kw_only=True):
    """Whom the hub's members trust. A root is `next` until all know it, `active` while it signs, `retiring` until
    nobody needs it."""

    trust_domain: str
    roots: tuple[RootState, ...]  # oldest first
