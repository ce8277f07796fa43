"""Is this a service we can run? Turns a definition as sent into the one we keep, or says what to change.

Pure: the action in `creation.py` gathers the facts of the cluster (`Rules`) and calls `normalise`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from hansa.kernel import errors, names, quantities
from hansa.kernel.egress import Pair, Rule
from hansa.services import bounds, images, places
from hansa.services.bounds import LONGEST
from hansa.services.errors import BadService
from hansa.services.secret_parts import has_keys
from hansa.services.service import (
    ORIGIN_CLUSTER,
    ORIGIN_SERVICE,
    Expose,
    Federation,
    Service,
    StorageIO,
    VolumeRequest,
    provider_of,
)

LOG_LEVELS = frozenset({"NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"})
VISIBILITIES = ("private", "restricted", "public")
INPUT_KINDS = frozenset({"minio", "webdav", "rucio"})
OUTPUT_KINDS = frozenset({"minio", "s3", "webdav", "onedata", "rucio"})
SUPPORTED_INPUTS = frozenset({"minio"})
SUPPORTED_OUTPUTS = frozenset({"minio", "s3", "webdav"})
TOPOLOGIES = ("none", "star", "tree", "mesh")
DELEGATIONS = ("", "static", "random", "load-based", "topsis")
_MOUNT_OPTIONS = re.compile(r"[A-Za-z0-9\-_.:=,/ ]*")
_RESERVED_MOUNTS = (
    "/oscar/config",
    "/oscar/bin",
    "/job",
    "/proc",
    "/dev",
    "/usr",
    "/etc",
    "/bin",
    "/sbin",
    "/lib",
)
_LOADER = ("LD_", "GLIBC_TUNABLES")  # no engine hands them to a program of its own; said early, for clarity
_LARGEST_SCRIPT = 1 << 20
_MOST_ALWAYS = 100  # instances of one service that run whether they are needed or not
_MOST_SCALE = 1_000_000  # any other number one would count to
_LONGEST_WAIT = 30 * 86_400


@dataclass(frozen=True, slots=True)
class Rules:
    """What the cluster allows and provides."""

    allowed_images: tuple[str, ...]
    default_provider: dict[str, Any]  # minio.default as clients see it: endpoint, verify, region, hidden keys
    egress: Rule | None = None  # what a definition may have us call; None where nobody will call it
    known_stores: tuple[Pair, ...] = ()  # may be called without being allowed
    nodes_pull: images.NodesPull | None = None  # who fetches images; None: the manager, or nobody


def normalise(service: Service, rules: Rules) -> Service:
    """The definition with defaults, tidy paths and provider ids; raises `BadService` with the field and a hint."""
    try:
        return _normalise(service, rules)
    except errors.Invalid as error:
        if isinstance(error, BadService):
            raise
        raise BadService(error.message, hint=error.hint) from error


def _normalise(service: Service, rules: Rules) -> Service:
    names.service(service.name)
    cpu, memory = needs(service)
    if cpu <= 0 or memory <= 0:
        raise BadService("cpu and memory must be more than 0", hint="write for example cpu: '0.5' and memory: 256Mi")
    for field in ("total_cpu", "total_memory", "ephemeral_storage_request"):
        if text := getattr(service, field):
            quantities.parse(text, what=field)
    images.check(service.image, rules.allowed_images)
    if rules.nodes_pull is not None:
        images.check_registry(service.image, rules.egress or Rule())
        images.check_secrets(service.image_pull_secrets, rules.nodes_pull)
    script = service.script.replace("\r\n", "\n").replace("\r", "\n")
    if not script.strip():
        raise BadService("script is empty", hint="give the script's text; FDL files name a file instead")
    if len(script.encode()) > _LARGEST_SCRIPT:
        raise BadService("script is larger than 1 MiB", hint="put programs and data into a bucket or volume")
    if service.visibility not in ("", *VISIBILITIES):
        raise BadService(
            f"visibility {service.visibility[:40]!r} is unknown",
            hint="use one of: " + ", ".join(VISIBILITIES),
        )
    bounds.check(service)
    _check_variables((*service.environment.variables, *service.environment.secrets))
    _check_expose(service.expose)
    _check_volume(service.volume)
    _check_scale("synchronous", service.synchronous.min_scale, service.synchronous.max_scale)
    if 0 < service.synchronous.max_scale < service.synchronous.min_scale:
        raise BadService("synchronous.max_scale is below min_scale", hint="0 means unlimited")
    if not _MOUNT_OPTIONS.fullmatch(service.mount.options):
        raise BadService("mount.options has characters that are not allowed", hint="allowed: A-Z a-z 0-9 -_.:=,/ space")
    level = service.log_level.strip().upper()
    changed = msgspec.structs.replace(
        service,
        script=script,
        visibility=service.visibility or "private",
        log_level=level if level in LOG_LEVELS else "INFO",
        allowed_users=tuple(dict.fromkeys(u.strip() for u in service.allowed_users if u.strip())),
        volume=_default_volume(service),
        federation=_federation(service.federation, service.name) if service.federation else None,
        storage_providers=_providers(service, rules),
    )
    mount = _normal_io(service.mount, changed, "mount") if service.mount.path else StorageIO()
    return msgspec.structs.replace(
        changed,
        input=tuple(dict.fromkeys(_normal_io(io, changed, "input") for io in service.input)),
        output=tuple(_normal_io(io, changed, "output") for io in service.output),
        mount=mount,
    )


def needs(service: Service) -> tuple[int, int]:
    """Millicores and bytes one run takes."""
    return quantities.millicores(service.cpu, what="cpu"), quantities.size(service.memory, what="memory")


def _check_variables(variables: Iterable[str]) -> None:
    for variable in variables:
        names.variable(variable)
        if variable.startswith(_LOADER):
            raise BadService(
                f"variable {variable[:60]} is for the system's loader and cannot be set here",
                hint="export it in the script, before the program that needs it",
            )


def _check_expose(expose: Expose) -> None:
    ports = (*expose.api_port, *expose.nodePort)
    if any(not 0 <= port <= 65535 for port in ports):
        raise BadService("expose.api_port and nodePort must be between 1 and 65535")
    if expose.nodePort and len(expose.nodePort) != len(expose.api_port):
        raise BadService("expose.nodePort must have as many entries as api_port")
    if expose.auth_type not in ("", "basic", "forward"):
        raise BadService(f"expose.auth_type {expose.auth_type[:40]!r} is unknown", hint="use basic or forward")
    if expose.probe_mode not in ("", "legacy", "direct"):
        raise BadService(f"expose.probe_mode {expose.probe_mode[:40]!r} is unknown", hint="use legacy or direct")
    _check_scale("expose", expose.min_scale, expose.max_scale)
    if not 0 <= expose.cpu_threshold <= _MOST_SCALE:
        raise BadService(f"expose.cpu_threshold must be between 0 and {_MOST_SCALE}", hint="it is a percentage")
    if ".." in expose.health_path.split("/") or len(expose.health_path) > 1024:
        raise BadService("expose.health_path is not valid")


def _check_scale(field: str, least: int, most: int) -> None:
    """What always runs is paid for by the machine, so nobody asks for any number of it."""
    if not 0 <= least <= _MOST_ALWAYS:
        raise BadService(f"{field}.min_scale must be between 0 and {_MOST_ALWAYS}")
    if not 0 <= most <= _MOST_SCALE:
        raise BadService(f"{field}.max_scale must be between 0 and {_MOST_SCALE}")


def _check_volume(volume: VolumeRequest | None) -> None:
    if volume is None:
        return
    path = volume.mount_path
    if not path.startswith("/") or ".." in path.split("/") or path.strip("/") == "" or len(path) > 1024:
        raise BadService("volume.mount_path must be an absolute path", hint="for example /data")
    if any(path == taken or path.startswith(taken + "/") for taken in _RESERVED_MOUNTS):
        raise BadService(f"volume.mount_path {path[:60]!r} is reserved", hint="use a path such as /data")
    if volume.lifecycle_policy not in ("", "delete", "retain"):
        raise BadService("volume.lifecycle_policy is unknown", hint="use delete or retain")
    if volume.size and quantities.size(volume.size, what="volume.size") <= 0:
        raise BadService("volume.size must be more than 0")
    if not volume.size and not volume.name:
        raise BadService("volume needs a size (to create one) or a name (to attach one)")
    if volume.name:
        names.volume(volume.name)


def _default_volume(service: Service) -> VolumeRequest | None:
    volume = service.volume
    if volume is None or not volume.size:
        return volume
    return msgspec.structs.replace(
        volume, name=volume.name or service.name, lifecycle_policy=volume.lifecycle_policy or "delete"
    )


def _federation(federation: Federation, service_name: str) -> Federation:
    topology = federation.topology.strip().lower() or "none"
    delegation = federation.delegation.strip().lower()
    if topology not in TOPOLOGIES:
        raise BadService(f"federation.topology {topology[:40]!r} is unknown", hint="use " + ", ".join(TOPOLOGIES))
    if delegation not in DELEGATIONS:
        raise BadService(
            f"federation.delegation {delegation[:40]!r} is unknown", hint="use " + ", ".join(DELEGATIONS[1:])
        )
    if not 0 <= federation.rescheduler_threshold <= _LONGEST_WAIT:
        raise BadService(f"federation.rescheduler_threshold must be between 0 and {_LONGEST_WAIT} seconds")
    if len(federation.group_id) > LONGEST:
        raise BadService(f"federation.group_id has more than {LONGEST} characters", hint="shorten it")
    for member in federation.members:
        check_member(member.type, member.cluster_id, member.service_name, member.url, member.priority)
    return msgspec.structs.replace(
        federation, group_id=federation.group_id or service_name, topology=topology, delegation=delegation
    )


def check_member(kind: str, cluster_id: str, service_name: str, url: str, priority: int) -> None:
    if kind.lower() not in ("oscar", "endpoint"):
        raise BadService(f"federation member type {kind[:40]!r} is unknown", hint="use oscar or endpoint")
    if not 0 <= priority <= _MOST_SCALE:
        raise BadService(f"federation member priority must be between 0 and {_MOST_SCALE}")
    if len(cluster_id) > LONGEST or len(url) > LONGEST:
        raise BadService(f"a federation member's cluster_id or url has more than {LONGEST} characters")
    if kind.lower() == "oscar":
        if not cluster_id:
            raise BadService("federation member of type oscar needs a cluster_id")
        names.service(service_name)
    elif not url.startswith(("http://", "https://")):
        raise BadService("federation member of type endpoint needs an http(s) url")


def _providers(service: Service, rules: Rules) -> dict[str, dict[str, dict[str, Any]]]:
    """The given providers with `minio.default` set to ours, unless a federation brought the origin's, or keys came
    with it: without keys it can only mean our own."""
    given = {kind.lower(): dict(by_id) for kind, by_id in service.storage_providers.items()}
    _check_settings(given)
    minio = given.setdefault("minio", {})
    default = minio.get("default") or {}
    with_keys = bool(service.federation and service.federation.members) and has_keys(default)
    if not ((ORIGIN_CLUSTER in service.annotations or with_keys) and default.get("endpoint")):
        default = rules.default_provider
    # `default` stands last of nothing: it is ours to set, whatever was sent
    given["minio"] = {**{k: v for k, v in minio.items() if k != "default"}, "default": default}
    if rules.egress is not None:
        places.check(given, rules.egress, rules.known_stores)
    return given


def _check_settings(given: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    for kind, by_id in given.items():
        for ident, settings in by_id.items():
            _check_provider(f"storage_providers.{kind[:40]}.{ident[:40]}", settings)


def _check_provider(name: str, settings: Mapping[str, Any]) -> None:
    """Every setting of a store is a text, but for `verify`."""
    for key, value in settings.items():
        kind = bool if key == "verify" else str
        if value is not None and not isinstance(value, kind):
            word = "true or false" if kind is bool else "a text"
            raise BadService(f"{name}.{key[:40]} must be {word}", hint="write it as the store's own documents do")


def _normal_io(io: StorageIO, service: Service, field: str) -> StorageIO:
    kind, ident = provider_of(io)
    possible = INPUT_KINDS if field == "input" else OUTPUT_KINDS
    if kind not in possible:
        raise BadService(
            f"{field} storage_provider {io.storage_provider[:40]!r} is not supported",
            hint="use one of: " + ", ".join(sorted(possible)),
        )
    supported = SUPPORTED_INPUTS if field == "input" else SUPPORTED_OUTPUTS
    if kind not in supported:
        raise BadService(
            f"{field} storage_provider {kind} is not available on this manager",
            hint="use one of: " + ", ".join(sorted(supported)),
        )
    if ident not in service.storage_providers.get(kind, {}):
        raise BadService(
            f"{field} uses {kind}.{ident}, which storage_providers does not define",
            hint=f"add storage_providers.{kind}.{ident} or use minio.default",
        )
    if kind == "webdav" and not str(service.storage_providers[kind][ident].get("hostname") or "").strip():
        raise BadService(f"storage_providers.{kind}.{ident[:40]} has no hostname", hint="for example dav.example.org")
    if field == "input" and (kind, ident) != ("minio", "default"):
        same = service.storage_providers["minio"]["default"].get("endpoint")
        if service.storage_providers[kind][ident].get("endpoint") != same:
            raise BadService(
                "an input must come from the cluster's own MinIO", hint="use storage_provider: minio.default"
            )
    path = _normal_path(io.path, kind, _default_bucket(service, field, kind, ident))
    if field == "input" and "/" not in path:
        raise BadService(f"input path {io.path[:60]!r} needs a folder in its bucket", hint="for example my-bucket/in")
    return msgspec.structs.replace(io, storage_provider=f"{kind}.{ident}", path=path)


def _default_bucket(service: Service, field: str, kind: str, ident: str) -> str:
    origin = service.annotations.get(ORIGIN_SERVICE, "")
    from_origin = (
        field == "output" and (kind, ident) == ("minio", "default") and service.annotations.get(ORIGIN_CLUSTER)
    )
    return origin if from_origin and origin else service.name


def _normal_path(path: str, kind: str, default_bucket: str) -> str:
    tidy = path.strip().strip("/").strip()
    if not tidy:
        raise BadService("an input or output path is empty", hint="for example my-bucket/in")
    steps = tidy.split("/")
    if len(tidy) > 1024 or any(step in ("", ".", "..") for step in steps) or any(ord(char) < 32 for char in tidy):
        raise BadService(
            f"path {tidy[:60]!r} is not valid",
            hint="at most 1024 characters, none of them a line end or the like, and no empty, . or .. step",
        )
    if kind not in ("minio", "s3"):
        return tidy
    if "/" not in tidy:
        tidy = f"{default_bucket}/{tidy}"
    names.bucket(tidy.partition("/")[0])
    return tidy
