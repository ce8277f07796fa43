"""Who says where a cluster is? Whoever lets it in, and the admin after that: sets, approves or refuses an address."""

from hansa.federation import acting, pinning, wanting
from hansa.federation.errors import AddressTaken, BadAddress, NotAskedFor
from hansa.federation.ports import ClusterRecord, TokenRecord
from hansa.federation.registry import Known
from hansa.federation.room import Hub
from hansa.identity import Caller
from hansa.kernel import endpoints
from hansa.messages.clusters import Address
from hansa.messages.members import Join


def at_join(hub: Hub, token: TokenRecord, said: Join, former: ClusterRecord | None) -> tuple[str, bool]:
    """(endpoint, verify) of who is let in: as whoever made the token said, or as it says itself. One that takes its own
    place again keeps the address of the place; one whose address nobody could be sent to has none, and asks for it from
    then on."""
    if former is not None and former.state != "left" and not token.endpoint:
        return former.endpoint, former.verify
    try:
        return checked(hub, token.endpoint or said.facts.endpoint, said.cluster), True
    except (BadAddress, AddressTaken):
        return "", True


def checked(hub: Hub, endpoint: str, cluster: str) -> str:
    """The address in its one form, if others may be sent there. Raises `BadAddress` and `AddressTaken`."""
    why = endpoints.objection(endpoint, plain_http=hub.settings.plain_http, same_machine=hub.settings.same_machine)
    if why:
        raise BadAddress(
            f"other clusters cannot be sent to {pinning.shown(endpoint) or 'it'}: {why}",
            hint="give the cluster an address as https://lubeck.example.org; in a network that you trust the hub's "
            "setting hub.plain_http allows plain http",
        )
    plain = endpoints.normal(endpoint)
    for other in hub.registry:
        if other.id != cluster and other.record.endpoint == plain and other.record.state != "left":
            raise AddressTaken(f"{plain} is the address of cluster {other.id}", hint="each cluster has its own")
    return plain


async def put(hub: Hub, caller: Caller, cluster: str, said: Address) -> Known:
    """Where an admin says it is. What the cluster itself says at this moment is no wish any more."""
    acting.require_admin(caller)
    plain = checked(hub, said.endpoint, cluster)

    def decide(record: ClusterRecord) -> wanting.Decision:
        new = pinning.pinned(record, plain, verify=said.verify)
        unchecked = "" if said.verify else ", its certificate not checked"
        return _changed(record, new, f"{plain}{_instead(record, plain)}{unchecked}, by {caller.name}")

    return await acting.change(hub, cluster, decide)


async def approve(hub: Hub, caller: Caller, cluster: str, endpoint: str) -> Known:
    """Others are told the address it asks for, which must be the one that whoever approves has seen. Its certificate is
    checked there, whatever was said of the former address."""
    acting.require_admin(caller)

    def decide(record: ClusterRecord) -> wanting.Decision:
        _must_ask_for(record, endpoint)
        plain = checked(hub, record.told.endpoint, cluster)
        new = pinning.pinned(record, plain, verify=True)
        return _changed(record, new, f"approved: {plain}{_instead(record, plain)}, by {caller.name}")

    return await acting.change(hub, cluster, decide)


async def refuse(hub: Hub, caller: Caller, cluster: str, endpoint: str) -> Known:
    """It stays where it is, and may go on asking for that address: nobody is told of it again."""
    acting.require_admin(caller)

    def decide(record: ClusterRecord) -> wanting.Decision:
        _must_ask_for(record, endpoint)
        asked = pinning.shown(record.told.endpoint)
        new = pinning.pinned(record, record.endpoint, verify=record.verify)
        return _changed(record, new, f"refused: {asked}, by {caller.name}")

    return await acting.change(hub, cluster, decide)


def _must_ask_for(record: ClusterRecord, endpoint: str) -> None:
    wish = pinning.wish_of(record)
    if not wish:
        raise NotAskedFor(f"cluster {record.id} asks for no other address", hint=f"hansa cluster show {record.id}")
    if wish != pinning.shown(endpoint):
        raise NotAskedFor(
            f"cluster {record.id} asks for {wish}, not for {pinning.shown(endpoint)}",
            hint="it may have changed its mind since you looked: look again",
        )


def _changed(record: ClusterRecord, new: ClusterRecord, told: str) -> wanting.Decision:
    return (record, "", "") if new == record else (new, "address", told)


def _instead(record: ClusterRecord, plain: str) -> str:
    return f" instead of {record.endpoint}" if record.endpoint and record.endpoint != plain else ""
