"""Which parts of a worker does its coordinator decide, and do two descriptions of a worker agree in them? Pure.

Left out is what every member sets for itself (owner, namespace, labels, …), what an answer shows to some and not to
others (keys, passwords, values of secrets), and what is empty: OSCAR leaves that out or spells it out as it likes.
Parts that only one of two descriptions has are not compared, for they are of a version the other does not know.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from hansa.kernel import quantities
from hansa.services import validation
from hansa.services.former_secrets import OPERATION
from hansa.services.replicas.topology import DEFINITION
from hansa.services.secret_parts import OURS, PROVIDER_SECRETS
from hansa.services.service import Service

_THEIR_OWN = frozenset({"owner", "namespace", "labels", "vo", "bucket_list"})
_AMOUNTS = frozenset({"cpu", "memory", "total_cpu", "total_memory", "ephemeral_storage_request"})
_OURS = "hansa/"  # annotations that change how a manager of ours runs a job; other people's are their own matter
_MARKS = frozenset({OPERATION, DEFINITION})  # say who wrote it last, not what it is


def parts(document: Mapping[str, Any], sent: Service) -> dict[str, str]:
    """A digest of each part of a worker as a member shows it; `sent` is what it was given."""
    found: dict[str, str] = {}
    for field in sent.__struct_fields__:
        if field in _THEIR_OWN or (field == "token" and not document.get(field)):
            continue
        found[field] = _digest(_told(field, document.get(field), sent))
    return found


def reckoned(sent: Service) -> dict[str, str]:
    """The same for a member that makes of it what we would make of it."""
    rules = validation.Rules((), sent.storage_providers.get("minio", {}).get("default", {}))
    kept = validation.normalise(sent, rules)
    return parts(msgspec.json.decode(msgspec.json.encode(kept)), sent)


def differing(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The names of the parts that are not what they were."""
    return sorted(part for part in then.keys() & now.keys() if then[part] != now[part])


def _told(field: str, value: Any, sent: Service) -> Any:
    if field in _AMOUNTS:
        return _amount(value)
    if (read := _READERS.get(field)) is not None and isinstance(value, Mapping):
        value = read(value)
    elif field == "annotations" and isinstance(value, Mapping):
        named = (sent.annotations.keys() | {key for key in value if str(key).startswith(_OURS)}) - _MARKS
        value = {key: value.get(key) for key in named}
    return _filled(value)


def _amount(value: Any) -> Any:
    """ "500m" and "0.5" are the same."""
    try:
        return str(quantities.parse(str(value)).normalize()) if value else None
    except quantities.BadQuantity:
        return value


def _environment(value: Mapping[str, Any]) -> Any:
    return {**value, "secrets": sorted(_as_map(value.get("secrets")).keys() - OURS)}


def _providers(value: Mapping[str, Any]) -> Any:
    return {
        kind: {
            ident: {key: text for key, text in _as_map(config).items() if key not in PROVIDER_SECRETS}
            for ident, config in _as_map(by_id).items()
        }
        for kind, by_id in value.items()
    }


def _clusters(value: Mapping[str, Any]) -> Any:
    return {
        ident: {key: text for key, text in _as_map(one).items() if key not in ("auth_user", "auth_password")}
        for ident, one in value.items()
    }


def _federation(value: Mapping[str, Any]) -> Any:
    members = value.get("members")
    if not isinstance(members, list):
        return value
    return {
        **value,
        "members": [{**_as_map(one), "headers": sorted(_as_map(_as_map(one).get("headers")))} for one in members],
    }


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "environment": _environment,
    "storage_providers": _providers,
    "clusters": _clusters,
    "federation": _federation,
}


def _as_map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _filled(value: Any) -> Any:
    """Without anything that is empty, down to the bottom."""
    if isinstance(value, Mapping):
        told = {str(key): _filled(one) for key, one in value.items()}
        return {key: one for key, one in told.items() if one is not None} or None
    if isinstance(value, list | tuple):
        return [_filled(one) for one in value] or None
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 3 and 3.0 are the same to whoever reads JSON
    return value or None


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
