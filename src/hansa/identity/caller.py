"""Who is asking? Every action takes a `Caller` as its first argument; doors get it from `signin`."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from hansa.identity.errors import TokenRefused
from hansa.identity.ports import Identity

ADMIN_UID = "cluster_admin"  # the owner OSCAR writes on everything the admin makes


@dataclass(frozen=True, slots=True)
class Caller:
    kind: Literal["admin", "user", "service"]
    uid: str  # a person's, by `uids`; for a service its owner's
    name: str
    groups: frozenset[str] = frozenset()
    issuer: str = ""
    subject: str = ""  # who it is at that issuer
    admin_view: bool = False  # may read the whole cluster's status and logs; gives no right to change anything
    service: str = ""  # the one service a service token speaks for
    giver: str = ""  # the member of the service's federation that hands jobs over, and may do nothing else

    @classmethod
    def admin(cls) -> "Caller":
        return cls(kind="admin", uid=ADMIN_UID, name=ADMIN_UID, admin_view=True)

    @classmethod
    def user(cls, identity: Identity, uid: str, users_admin: Collection[str] = ()) -> "Caller":
        if uid == ADMIN_UID:
            # Owners are compared by uid alone, so this subject would own everything the admin made.
            raise TokenRefused(
                f"the subject {ADMIN_UID} is reserved for the admin",
                hint=f"ask the operator of {identity.issuer} for another subject",
                issuer=identity.issuer,
            )
        return cls(
            kind="user",
            uid=uid,
            name=identity.name,
            groups=identity.groups,
            issuer=identity.issuer,
            subject=identity.subject,
            admin_view=uid in users_admin,
        )

    @classmethod
    def of_service(cls, service: str, owner: str, *, giver: str = "") -> "Caller":
        """A service's own token acts as the service's owner, for that service only."""
        return cls(kind="service", uid=owner, name=service, service=service, giver=giver)

    @property
    def is_admin(self) -> bool:
        return self.kind == "admin"
