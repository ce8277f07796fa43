"""Who may see, call and change what? Pure rules on a thing's owner, visibility and list of allowed users.

`may_…` answers, `require_…` raises. The admin may do everything; a user owns by uid; a service token may call
its own service and do nothing else. Doors never decide such questions themselves.
"""

from collections.abc import Collection

from hansa.identity.caller import Caller
from hansa.kernel.errors import Forbidden, NotFound

PUBLIC, RESTRICTED, PRIVATE = "public", "restricted", "private"


def may_see(caller: Caller, *, owner: str, visibility: str, allowed: Collection[str] | None = None) -> bool:
    """Whether the caller may know of a service or bucket and read it.

    A visibility we do not know hides the thing from all but its owner and the admin.
    """
    return caller.kind != "service" and _reaches(caller, owner, visibility, allowed)


def may_invoke(
    caller: Caller, *, service: str, owner: str, visibility: str, allowed: Collection[str] | None = None
) -> bool:
    """Whether the caller may run a service or submit jobs to it."""
    if caller.kind == "service":
        # The name alone is not enough: two owners may each have a service of that name.
        return bool(caller.uid) and (caller.service, caller.uid) == (service, owner)
    return _reaches(caller, owner, visibility, allowed)


def may_change(caller: Caller, owner: str) -> bool:
    """Whether the caller may update, delete, start or stop it, or change its members."""
    return caller.is_admin or (caller.kind == "user" and _owns(caller, owner))


def may_view_cluster(caller: Caller) -> bool:
    """Whether the caller sees the admin's part of `/system/status` and `/system/logs`."""
    return caller.admin_view


def require_visible(
    caller: Caller, what: str, *, owner: str, visibility: str, allowed: Collection[str] | None = None
) -> None:
    """`what` is how the message names the thing, such as "service cowsay"."""
    if not may_see(caller, owner=owner, visibility=visibility, allowed=allowed):
        raise Forbidden(f"you may not see {what}", hint="ask its owner to share it with you")


def require_invocable(
    caller: Caller, service: str, *, owner: str, visibility: str, allowed: Collection[str] | None = None
) -> None:
    """OSCAR does not tell a caller of `/job` and `/run` whether a service is missing or not for them."""
    if not may_invoke(caller, service=service, owner=owner, visibility=visibility, allowed=allowed):
        raise NotFound(
            f"there is no service {service} for you",
            hint="check the name, or ask its owner to share it with you",
        )


def require_change(caller: Caller, what: str, *, owner: str, instead: str = "") -> None:
    if not may_change(caller, owner):
        hint = "ask its owner or the cluster's admin" + (f", or {instead}" if instead else "")
        raise Forbidden(f"only the owner of {what} may change it", hint=hint)


def require_admin(caller: Caller, action: str) -> None:
    if not caller.is_admin:
        raise Forbidden(f"only the admin may {action}", hint="sign in with the cluster's Basic user and password")


def require_cluster_view(caller: Caller, what: str) -> None:
    if not may_view_cluster(caller):
        raise Forbidden(
            f"only the admin and the users listed in oidc.users_admin may see {what}",
            hint="ask the cluster's operator to list your subject there",
        )


def _reaches(caller: Caller, owner: str, visibility: str, allowed: Collection[str] | None) -> bool:
    if caller.is_admin or _owns(caller, owner) or visibility == PUBLIC:
        return True
    return visibility == RESTRICTED and bool(caller.uid) and caller.uid in (allowed or ())


def _owns(caller: Caller, owner: str) -> bool:
    return bool(owner) and caller.uid == owner
