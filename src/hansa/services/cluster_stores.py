"""`minio.<cluster id>` without more: the object store of that cluster, with the caller's own keys there.

A definition may name another cluster of the federation as the place of an output by its id alone. Where that store is,
and the caller's keys for it, are asked of the cluster itself when the service is created or changed.
"""

import msgspec

from hansa.services import replicas
from hansa.services.peers import Credentials, UntrustedCluster
from hansa.services.room import Room
from hansa.services.service import Service, StorageIO, provider_of


async def completed(room: Room, definition: Service, authorization: str) -> Service:
    """The definition with every store it names by a cluster's id. What no cluster answers to is left for validation."""
    given = definition.storage_providers.get("minio", {})
    output = definition.output
    if room.cluster_id not in given:
        own = ("minio", room.cluster_id)
        output = tuple(_at_home(io) if provider_of(io) == own else io for io in output)
        definition = msgspec.structs.replace(definition, output=output)
    found = {
        ident: store
        for ident in sorted({provider_of(io)[1] for io in output if provider_of(io)[0] == "minio"})
        if ident != "default"
        and ident not in given
        and (store := await _ask(room, definition, ident, authorization)) is not None
    }
    if not found:
        return definition
    providers = {**definition.storage_providers, "minio": {**given, **found}}
    return msgspec.structs.replace(definition, storage_providers=providers)


def _at_home(io: StorageIO) -> StorageIO:
    return msgspec.structs.replace(io, storage_provider="minio.default")


async def _ask(room: Room, definition: Service, ident: str, authorization: str) -> dict[str, str | bool] | None:
    named = definition.clusters.get(ident)
    try:
        peer = room.peers.find(ident, named.endpoint if named else "")
    except UntrustedCluster:
        return None
    passwords = {f"clusters.{ident}.auth_password": named.auth_password} if named else {}
    known = await room.keyring.offered(definition, passwords, ident, caller=authorization)

    async def keys(credentials: Credentials) -> dict[str, str | bool]:
        address, own = await peer.storage_keys(credentials)
        return {
            "endpoint": address.endpoint,
            "region": address.region,
            "verify": address.verify,
            "access_key": own.access_key,
            "secret_key": own.secret_key,
        }

    return await replicas.as_somebody(known, keys)
