"""What people do with clusters: cordon, drain, let go, remove, describe. Each is one conditional write."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from hansa.federation import syncing, wanting
from hansa.federation.errors import ChangedMeanwhile, NoSuchCluster, WrongState
from hansa.federation.ports import ClusterRecord, Note
from hansa.federation.registry import Known
from hansa.federation.room import Hub
from hansa.identity import Caller
from hansa.kernel.errors import Forbidden
from hansa.messages.clusters import FactsChange, StatusChange

_TRIES = 5


def require_admin(caller: Caller) -> None:
    if not caller.is_admin:
        raise Forbidden("only the federation's admin may change it", hint="sign in as admin")


def get(hub: Hub, cluster: str) -> Known:
    known = hub.registry.get(cluster)
    if known is None:
        raise NoSuchCluster(f"there is no cluster {cluster[:63]!r} in this federation", hint="hansa cluster ls")
    return known


async def change(hub: Hub, cluster: str, decide: Callable[[ClusterRecord], wanting.Decision]) -> Known:
    """Writes what `decide` makes of the newest record, with a note (kind, detail) unless its kind is ""; decides anew
    if somebody else was faster."""
    for _ in range(_TRIES):
        known = get(hub, cluster)
        new, kind, detail = decide(known.record)
        if new == known.record:
            return known
        written = await hub.clusters.put(new, *((Note(cluster, kind, detail),) if kind else ()))
        if written is not None:
            hub.registry.put(written)
            hub.directory.learn(written)
            hub.waking.wake(cluster)
            return get(hub, cluster)

        await syncing.learn(hub)
    raise ChangedMeanwhile(f"cluster {cluster} is being changed by others", hint="try again")


async def cordon(hub: Hub, caller: Caller, cluster: str, *, on: bool) -> Known:
    """Whether nothing new may be placed there. Taking the cordon away also ends a drain."""
    require_admin(caller)
    decide = wanting.cordon if on else wanting.uncordon
    return await change(hub, cluster, lambda record: decide(record, caller.name))


async def drain(hub: Hub, caller: Caller, cluster: str) -> Known:
    """Its waiting jobs go elsewhere, running ones end, nothing new comes."""
    require_admin(caller)
    return await change(hub, cluster, lambda record: wanting.drain(record, caller.name))


async def let_go(hub: Hub, caller: Caller, cluster: str) -> Known:
    """It drains, and leaves when nothing of it runs any more."""
    require_admin(caller)
    return await change(hub, cluster, lambda record: wanting.leave(record, caller.name))


async def change_status(hub: Hub, caller: Caller, cluster: str, asked: StatusChange) -> Known:
    """The three above in one: what is wanted of a cluster, and whether it is cordoned."""
    require_admin(caller)
    return await change(hub, cluster, lambda record: wanting.all_of(record, asked, caller.name))


async def remove(hub: Hub, caller: Caller, cluster: str, *, force: bool) -> None:
    """Nothing of it stays. One that is still heard should leave by itself; force does without."""
    require_admin(caller)
    known = get(hub, cluster)
    gone = known.record.state in ("left", "pending", "unreachable") or known.record.kind == "oscar"
    if not gone and not force:
        raise WrongState(
            f"cluster {cluster} is {known.record.state}",
            hint=f"hansa cluster leave {cluster} lets it finish its work; hansa cluster remove --force does not wait",
        )
    await hub.clusters.remove(cluster, Note(cluster, "removed", f"removed, by {caller.name}"))
    hub.registry.drop(cluster)
    syncing.forget(hub, cluster, hub.registry.version + 1)


async def describe(hub: Hub, caller: Caller, cluster: str, said: FactsChange) -> Known:
    """What an admin says of a cluster wins over its own words."""
    require_admin(caller)
    given: dict[str, Any] = {
        name: value for name in said.__struct_fields__ if (value := getattr(said, name)) is not msgspec.UNSET
    }

    def decide(record: ClusterRecord) -> wanting.Decision:
        overrides = {**record.overrides, **given}
        if overrides == record.overrides:
            return record, "", ""
        new = replace(record, overrides=overrides)
        return new, "facts", f"{', '.join(sorted(given))} changed, by {caller.name}"

    return await change(hub, cluster, decide)
