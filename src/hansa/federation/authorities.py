"""What do people see of the roots of trust, and what may they do? Look, introduce a new one, give an old one up."""

from collections import Counter

from hansa.federation import rotation
from hansa.federation.acting import require_admin
from hansa.federation.errors import ChangedMeanwhile, NoSuchRoot, RotationUnderWay, WrongState
from hansa.federation.room import Hub
from hansa.identity import Caller, authority
from hansa.messages.trust import AuthorityState, RootState

_TRIES = 5


def view(hub: Hub) -> AuthorityState:
    held = Counter(root for known in hub.registry for root in rotation.roots_in_use(known))
    roots = tuple(
        RootState(
            id=one.root.id,
            state=one.state,
            since=one.since,
            until=authority.expires(one.root.certificate),
            fingerprint=authority.fingerprint(one.root.certificate),
            certificate=one.root.certificate,
            holders=held[one.root.id],
        )
        for one in hub.trust.all
    )
    return AuthorityState(trust_domain=hub.trust.domain, roots=roots)


async def rotate(hub: Hub, caller: Caller) -> None:
    """Introduces a new root now; everything else follows by itself."""
    require_admin(caller)
    for _ in range(_TRIES):
        await hub.trust.learn()
        if any(one.state == "next" for one in hub.trust.all):
            raise RotationUnderWay("a new root is being introduced already", hint="hansa hub roots")
        if await rotation.take(hub, rotation.Make(f"asked for by {caller.name}"), None):
            return
    raise ChangedMeanwhile("the hub's roots of trust are being changed by others", hint="try again")


async def drop(hub: Hub, caller: Caller, root: str) -> None:
    """Gives a retiring root up at once, as after the theft of its key. Who still has a certificate of it is out."""
    require_admin(caller)
    for _ in range(_TRIES):
        await hub.trust.learn()
        found = next((one for one in hub.trust.trusted if one.root.id == root), None)
        if found is None:
            raise NoSuchRoot(f"there is no root {root[:32]!r} that is trusted", hint="hansa hub roots")
        if found.state != "retiring":
            raise WrongState(f"root {root} is {found.state}", hint="introduce a new one first: it will take its place")
        if await rotation.take(hub, rotation.Drop(root, f"given up by {caller.name}"), None):
            return
    raise ChangedMeanwhile("the hub's roots of trust are being changed by others", hint="try again")
