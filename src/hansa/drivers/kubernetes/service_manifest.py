"""What does a service look like where Kubernetes keeps it, and how is it read back? Pure.

A ConfigMap of the service's name, as OSCAR has it, shows everything but secrets; what YAML has no place for stands in
`hansa/…` annotations. Beside it a Secret of the same name holds what its owner's scripts may see. Everything secret is
once more, and whole, in a Secret of the manager's own namespace, which no pod of a user can mount. That one also says
whose service it is: whoever may write a ConfigMap in a user's namespace cannot give it to somebody else.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

import msgspec
import yaml
from lightkube.resources.core_v1 import ConfigMap, Secret

from hansa import services
from hansa.drivers.kubernetes import labels
from hansa.drivers.runs import environment
from hansa.kernel import errors, names

KEEPS = "hansa/keeps"
DEFINITION, SCRIPT = "function_config.yaml", "script.sh"
_VERSION, _PHASE, _STOPPED = "hansa/version", "hansa/phase", "hansa/stopped"
_BUCKETS, _CREATED, _UPDATED = "hansa/made-buckets", "hansa/created", "hansa/updated"
_PAPER = "service.json"
_MOST = 1024 * 1024  # bytes that Kubernetes takes in one ConfigMap or Secret
_LABEL = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_PRIVATE = re.compile(r"service-(.+)-[0-9a-f]{8}")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class DefinitionTooLarge(errors.TooLarge):
    """A service is larger than what Kubernetes keeps in one object."""

    code = "kubernetes.definition-too-large"


class UnreadableService(errors.HansaError):
    """What Kubernetes keeps of a service cannot be read as one."""

    code = "kubernetes.unreadable-service"


@dataclass(frozen=True, slots=True)
class Where:
    cluster: str
    namespace: str  # of the service's pods
    private: str  # the manager's own


@dataclass(frozen=True, slots=True)
class Kept:
    """The three objects of one service."""

    config_map: ConfigMap
    secret: Secret | None  # None where a script has no secrets
    private: Secret


class _Paper(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is in the manager's own Secret."""

    name: str
    owner: str
    token: str
    headers: list[dict[str, str] | None]  # of the federation's members, in their order
    storage_providers: dict[str, dict[str, dict[str, Any]]]
    secrets: dict[str, str]
    bucket_owners: dict[str, str] = {}
    endpoints: dict[str, str] = {}


def render(record: services.Record, secrets: Mapping[str, str], where: Where) -> Kept:
    """Raises `DefinitionTooLarge`."""
    service = record.service
    shown = msgspec.structs.replace(service, script="", token="")
    data = {DEFINITION: environment.definition_text(shown), SCRIPT: service.script}
    _check_size(service.name, data)
    members = service.federation.members if service.federation else ()
    paper = _Paper(
        name=service.name,
        owner=service.owner,
        token=service.token,
        headers=[member.headers for member in members],
        storage_providers=service.storage_providers,
        secrets=dict(secrets),
        bucket_owners=dict(record.bucket_owners),
        endpoints=dict(record.endpoints),
    )
    about = {
        "name": service.name,
        "namespace": where.namespace,
        "labels": _marks(service, where.cluster),
        "annotations": {labels.CLUSTER: where.cluster, **_state(record)},
    }
    made = ConfigMap.from_dict({"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": data})
    seen = services.secret_parts.for_script(secrets)
    return Kept(
        config_map=cast(ConfigMap, made),
        secret=_secret(service, service.name, where.namespace, where.cluster, seen) if seen else None,
        private=_secret(
            service,
            private_name(service.name, where.cluster),
            where.private,
            where.cluster,
            {_PAPER: msgspec.json.encode(paper).decode()},
        ),
    )


def private_name(service: str, cluster: str) -> str:
    """Managers of several clusters may share a namespace."""
    return f"service-{service}-{hashlib.sha256(cluster.encode()).hexdigest()[:8]}"


def service_of(name: str, *, private: bool) -> str:
    """Whose object it is, by its name alone."""
    found = _PRIVATE.fullmatch(name) if private else None
    return found.group(1) if found else name


def followed(cluster: str) -> dict[str, str]:
    """By these labels our objects are found."""
    return {**labels.of_cluster(cluster), KEEPS: "service"}


def is_ours(found: Any, cluster: str) -> bool:
    """Also after somebody took the labels off, which is what the annotation is for."""
    marks, notes = found.metadata.labels or {}, found.metadata.annotations or {}
    return followed(cluster).items() <= marks.items() or notes.get(labels.CLUSTER) == cluster


def read(config_map: ConfigMap, private: Secret | None) -> tuple[services.Record, dict[str, str]]:
    """The service and its secrets. Of a ConfigMap that OSCAR made, too: ready, with the token it shows and without
    secrets. Raises `UnreadableService`."""
    meta = config_map.metadata
    assert meta is not None
    data = config_map.data or {}
    name = str(meta.name)
    try:
        tree = yaml.load(data[DEFINITION], Loader=_LOADER)  # noqa: S506 - a safe loader, in C
        service = msgspec.convert(_without_nothing(tree), services.Service)
        service = msgspec.structs.replace(service, script=data.get(SCRIPT, service.script))
        paper = None if private is None else msgspec.json.decode(_opened(private), type=_Paper)
        names.service(service.name)
        if service.name != name:
            raise ValueError(f"it is of a service named {service.name!r}")
        if paper is not None:
            service = _whole(service, paper)
        made = meta.creationTimestamp.timestamp() if isinstance(meta.creationTimestamp, datetime) else 0.0
        record = _record(service, meta.annotations or {}, made)
        if paper is not None:
            record = replace(record, bucket_owners=paper.bucket_owners, endpoints=paper.endpoints)
    except (KeyError, TypeError, ValueError, yaml.YAMLError, RecursionError, names.BadName) as error:
        said = f"{error} is missing" if isinstance(error, KeyError) else str(error).splitlines()[0]
        raise UnreadableService(
            f"the ConfigMap {name} in namespace {meta.namespace} does not hold a service: {said}",
            hint="repair it, or delete it and create the service again",
        ) from None
    return record, dict(paper.secrets) if paper else {}


def version_of(config_map: Any) -> int:
    """0 where it says none."""
    text = (config_map.metadata.annotations or {}).get(_VERSION, "")
    return int(text) if text.isdecimal() else 0


def unlike(found: Any | None, wanted: Any) -> str:
    """In what an object is not as it was made; "" if it is. What others added to it is theirs."""
    what = f"the {type(wanted).__name__} {wanted.metadata.name}"
    if found is None:
        return f"{what} is gone"
    for part, given, asked in (
        ("", found.data, wanted.data),
        ("the label ", found.metadata.labels, wanted.metadata.labels),
        ("the annotation ", found.metadata.annotations, wanted.metadata.annotations),
    ):
        for key, text in (asked or {}).items():
            if (given or {}).get(key) != text:
                return f"{part}{key} of {what} was {'changed' if key in (given or {}) else 'removed'}"
    return ""


def _state(record: services.Record) -> dict[str, str]:
    return {
        _VERSION: str(record.version),
        _PHASE: record.phase,
        _STOPPED: json.dumps(record.stopped),
        _BUCKETS: json.dumps(list(record.made_buckets)),
        _CREATED: repr(record.created),
        _UPDATED: repr(record.updated),
    }


def _record(service: services.Service, notes: Mapping[str, str], made: float) -> services.Record:
    phase = notes.get(_PHASE, "ready")
    if phase not in ("creating", "ready", "deleting"):
        raise ValueError(f"the phase {phase!r} is unknown")
    created = float(notes.get(_CREATED, made))
    return services.Record(
        service=service,
        version=int(notes.get(_VERSION, "1")),
        phase=cast(Any, phase),
        stopped=json.loads(notes.get(_STOPPED, "false")) is True,
        made_buckets=tuple(str(bucket) for bucket in json.loads(notes.get(_BUCKETS, "[]"))),
        created=created,
        updated=float(notes.get(_UPDATED, created)),
    )


def _whole(service: services.Service, paper: _Paper) -> services.Service:
    if (service.name, service.owner) != (paper.name, paper.owner):
        raise ValueError(f"it says owner {service.owner!r}, and the manager knows that this is not so")
    federation = service.federation
    if federation is not None:
        members = federation.members
        headers = paper.headers if len(paper.headers) == len(members) else [None] * len(members)
        filled = tuple(
            msgspec.structs.replace(member, headers=given) for member, given in zip(members, headers, strict=True)
        )
        federation = msgspec.structs.replace(federation, members=filled)
    return msgspec.structs.replace(
        service, token=paper.token, federation=federation, storage_providers=paper.storage_providers
    )


def _marks(service: services.Service, cluster: str) -> dict[str, str]:
    """The service's own labels as far as Kubernetes can carry them, and over them those by which it is found."""
    fit = {key: text for key, text in service.labels.items() if _LABEL.fullmatch(key) and "hansa/" not in key}
    given = {key: labels.value(text) for key, text in fit.items()}
    return {**given, labels.OSCAR_SERVICE: service.name, **followed(cluster)}


def _secret(service: services.Service, name: str, namespace: str, cluster: str, texts: Mapping[str, str]) -> Secret:
    _check_size(service.name, texts)
    made = Secret.from_dict(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {labels.OSCAR_SERVICE: service.name, **followed(cluster)},
                "annotations": {labels.CLUSTER: cluster},
            },
            "type": "Opaque",
            "data": {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()},
        }
    )
    return cast(Secret, made)


def _opened(secret: Secret) -> bytes:
    return base64.b64decode((secret.data or {})[_PAPER])


def _check_size(service: str, texts: Mapping[str, str]) -> None:
    size = sum(len(key) + len(text.encode()) for key, text in texts.items())
    if size > _MOST:
        raise DefinitionTooLarge(
            f"service {service} takes {size} bytes, and Kubernetes keeps at most {_MOST} in one object",
            hint="bring what is large in the image, or as an input from a bucket",
        )


def _without_nothing(tree: Any) -> Any:
    """OSCAR writes null for what is not given; a default is meant."""
    if isinstance(tree, dict):
        return {key: _without_nothing(value) for key, value in tree.items() if value is not None}
    if isinstance(tree, list):
        return [_without_nothing(value) for value in tree]
    return tree
