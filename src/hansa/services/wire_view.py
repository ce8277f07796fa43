"""How a service looks to whoever asks: OSCAR's keys in OSCAR's order, and only the secrets the viewer may have.

The owner and the admin see the service token (clients need it to submit jobs) and the keys of foreign stores they
gave themselves. Everybody else sees blanks. Cluster passwords and user secrets are shown to nobody.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from hansa.services.ports import Record
from hansa.services.secret_parts import providers_with_keys
from hansa.services.service import Federation, Member, StorageIO
from hansa.storage import Standing

_THERE = Standing()
# keys OSCAR leaves out when they are empty
_OMIT_EMPTY = (
    "federation",
    "script",
    "image_pull_secrets",
    "storage_providers",
    "clusters",
    "namespace",
    "volume",
)


def definition(record: Record, *, full: bool, secrets: Mapping[str, str], volume: Standing = _THERE) -> dict[str, Any]:
    """The service as an answer carries it. `volume` is how its volume is, if it has one."""
    service = record.service
    shown: dict[str, Any] = {}
    for field in service.__struct_fields__:
        value = getattr(service, field)
        if field in _OMIT_EMPTY and not value:
            continue
        shown[field] = value
    shown["input"] = [_io(io) for io in service.input]
    shown["output"] = [_io(io) for io in service.output]
    shown["mount"] = _io(service.mount)
    shown["expose"] = _expose(service.expose)
    if service.federation is not None:
        shown["federation"] = federation(service.federation, full=full)
    if full:
        shown["storage_providers"] = providers_with_keys(service, secrets)
    else:
        shown["token"] = ""
        shown["clusters"] = {
            ident: msgspec.structs.replace(cluster, auth_user="") for ident, cluster in service.clusters.items()
        }
        if not shown["clusters"]:
            del shown["clusters"]
    if service.volume is not None:
        shown["volume"] = {key: value for key, value in msgspec.to_builtins(service.volume).items() if value}
        shown["volume_status"] = {"enabled": True, "name": service.volume.name, "phase": volume.phase}
        if volume.trouble:
            shown["volume_status"]["error"] = volume.reason
    else:
        shown["volume_status"] = {"enabled": False}
    return shown


def federation(given: Federation, *, full: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {"group_id": given.group_id, "topology": given.topology}
    if given.delegation:
        shown["delegation"] = given.delegation
    if given.rescheduler_threshold:
        shown["rescheduler_threshold"] = given.rescheduler_threshold
    if given.members:
        shown["members"] = members(given, full=full)
    if given.weights:
        shown["weights"] = given.weights
    return shown


def members(given: Federation, *, full: bool) -> tuple[Member, ...]:
    """Others see which headers a member is called with, not what they say: most often a key."""
    if full:
        return given.members
    return tuple(
        msgspec.structs.replace(member, headers=dict.fromkeys(member.headers, "")) if member.headers else member
        for member in given.members
    )


def _io(io: StorageIO) -> dict[str, Any]:
    shown: dict[str, Any] = {"storage_provider": io.storage_provider, "path": io.path}
    for key in ("suffix", "prefix", "options"):
        if value := getattr(io, key):
            shown[key] = value
    return shown


def _expose(expose: Any) -> dict[str, Any]:
    optional = ("api_port", "nodePort", "auth_type", "probe_mode")
    return {
        key: getattr(expose, key) for key in expose.__struct_fields__ if key not in optional or getattr(expose, key)
    }
