"""May a definition have its runs call what it names, as things are in this cluster today?

Three stores may be named although nobody allowed their address: our own, and, where a cluster we trust itself answers
at that very address, the store of a replica's origin and one that a cluster told us of (`minio.<cluster id>`). Names
are resolved once, as a courtesy to whoever creates the service; whoever dials asks again, for they may lead elsewhere
by then.
"""

import asyncio
import contextlib
from collections.abc import Collection, Iterator
from dataclasses import replace

from hansa.kernel.egress import BadTarget, EgressRefused, Pair, same_address, target_of
from hansa.services import places, validation
from hansa.services.errors import BadService
from hansa.services.room import Room
from hansa.services.service import ORIGIN_CLUSTER, Service

_COURTESY_SECONDS = 8.0


async def normalised(room: Room, definition: Service, told: Collection[str] = ()) -> Service:
    """The definition as it is kept; raises `BadService`. `told` are the clusters whose stores stand in it by their own
    word, and not by a tenant's."""
    known = tuple(_known_stores(room, definition, told))
    service = validation.normalise(definition, replace(room.rules(), known_stores=known))
    await _resolve(room, service, known)
    return service


async def check(room: Room, service: Service, told: Collection[str] = ()) -> None:
    """The same for the stores of a definition that is normal already."""
    known = tuple(_known_stores(room, service, told))
    if (rule := room.rules().egress) is not None:
        places.check(service.storage_providers, rule, known)
    await _resolve(room, service, known)


def as_before(before: Service, after: Service) -> frozenset[str]:
    """The ids of stores that are where they were, and so passed once."""
    old, new = before.storage_providers.get("minio", {}), after.storage_providers.get("minio", {})
    return frozenset(
        ident for ident in old.keys() & new.keys() if old[ident].get("endpoint") == new[ident].get("endpoint")
    )


def added(before: Service, after: Service) -> frozenset[str]:
    """The ids of stores that clusters told us of, in between."""
    return frozenset(after.storage_providers.get("minio", {})) - frozenset(before.storage_providers.get("minio", {}))


def told_by(endpoint: str, tellers: Collection[str]) -> tuple[Pair, ...]:
    """The store's address, if one of these clusters itself answers at that very address."""
    if any(same_address(endpoint, teller) for teller in tellers if teller):
        target = target_of(endpoint)
        return ((target.host, target.port),)
    return ()


def stores_of_clusters(room: Room, service: Service, idents: Collection[str]) -> Iterator[Pair]:
    for ident, given in service.storage_providers.get("minio", {}).items():
        if ident in idents and ident not in ("default", room.cluster_id):
            yield from told_by(str(given.get("endpoint") or ""), (room.peers.endpoint_of(ident),))


def known_by_id(room: Room, service: Service) -> frozenset[str]:
    """The ids of its stores, but the default one, that stand there by a cluster's own word, or are ours."""
    own = room.rules().default_provider.get("endpoint")
    others = {ident: given for ident, given in service.storage_providers.get("minio", {}).items() if ident != "default"}
    return frozenset(
        ident
        for ident, given in others.items()
        if (own and given.get("endpoint") == own) or any(stores_of_clusters(room, service, (ident,)))
    )


def _known_stores(room: Room, service: Service, told: Collection[str]) -> Iterator[Pair]:
    if own := str(room.rules().default_provider.get("endpoint") or ""):
        target = target_of(own)
        yield target.host, target.port
    origin = service.annotations.get(ORIGIN_CLUSTER, "")
    default = str(service.storage_providers.get("minio", {}).get("default", {}).get("endpoint") or "")
    if default and origin not in ("", room.cluster_id):  # of us, nobody but ourselves tells
        yield from told_by(default, (room.peers.endpoint_of(origin),))
    yield from stores_of_clusters(room, service, told)


async def _resolve(room: Room, service: Service, known: Collection[Pair]) -> None:
    """For a bounded time: names that are slow to resolve are looked at when they are dialled."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_COURTESY_SECONDS):
            for place in places.of(service.storage_providers):
                try:
                    await room.check_place(place.url, place.known(known))
                except (EgressRefused, BadTarget) as error:
                    raise BadService(f"{place.field}: {error.message}", hint=error.hint) from error
