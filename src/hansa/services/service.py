"""A user's service as OSCAR's clients write and read it: the fields in wire order, with OSCAR's defaults.

The same struct is what an FDL means, what `/system/services` carries and what the store keeps. Who may see which
part of it is decided in `wire_view.py`; what a valid definition is, in `validation.py`.
"""

from typing import Any

import msgspec

from hansa.identity import access

ORIGIN_CLUSTER = "oscar.grycap/origin-cluster"
ORIGIN_SERVICE = "oscar.grycap/origin-service"
FEDERATION_WORKER = "oscar.grycap/federation-worker"
RESERVED = (ORIGIN_CLUSTER, ORIGIN_SERVICE, FEDERATION_WORKER)  # annotations that a coordinator gives its replicas


class Struct(msgspec.Struct, frozen=True, kw_only=True):
    """Wire objects: unknown keys are ignored, as OSCAR's clients expect."""


class Synchronous(Struct, frozen=True, kw_only=True):
    min_scale: int = 0
    max_scale: int = 0


class Member(Struct, frozen=True, kw_only=True):
    type: str = ""
    cluster_id: str = ""
    service_name: str = ""
    url: str = ""
    ssl_verify: bool = False
    priority: int = 0
    headers: dict[str, str] | None = None
    parent: str | msgspec.UnsetType = (
        msgspec.UNSET
    )  # ours: the member this one hangs on, "cluster" or "cluster/service"

    @property
    def key(self) -> str:
        """How decisions, plans and people name a member."""
        return f"{self.cluster_id}/{self.service_name}" if self.type.lower() == "oscar" else self.url


class Federation(Struct, frozen=True, kw_only=True):
    group_id: str = ""
    topology: str = "none"
    delegation: str = ""
    rescheduler_threshold: int = 0
    members: tuple[Member, ...] = ()
    weights: dict[str, float] | msgspec.UnsetType = msgspec.UNSET  # ours: what a policy's criteria count


class ClusterRef(Struct, frozen=True, kw_only=True):
    endpoint: str = ""
    auth_user: str = ""
    auth_password: str = ""
    ssl_verify: bool = False


class StorageIO(Struct, frozen=True, kw_only=True):
    storage_provider: str = ""
    path: str = ""
    suffix: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()
    options: str = ""


class Expose(Struct, frozen=True, kw_only=True):
    min_scale: int = 0
    max_scale: int = 0
    api_port: tuple[int, ...] = ()
    cpu_threshold: int = 0
    rewrite_target: bool = False
    nodePort: tuple[int, ...] = ()  # noqa: N815 - the wire's spelling
    default_command: bool = False
    set_auth: bool = False
    auth_type: str = ""
    health_path: str = ""
    probe_mode: str = ""

    @property
    def port(self) -> int:
        """The port the service listens on; 0 means it is not exposed."""
        return self.api_port[0] if self.api_port else 0


class Environment(Struct, frozen=True, kw_only=True):
    variables: dict[str, str] = {}
    secrets: dict[str, str] = {}


class VolumeRequest(Struct, frozen=True, kw_only=True):
    name: str = ""
    size: str = ""
    mount_path: str = ""
    lifecycle_policy: str = ""


class Service(Struct, frozen=True, kw_only=True):
    name: str = ""
    cluster_id: str = ""
    memory: str = "256Mi"
    cpu: str = "0.2"
    total_memory: str = ""
    total_cpu: str = ""
    ephemeral_storage_request: str = ""
    enable_gpu: bool = False
    enable_sgx: bool = False
    image_prefetch: bool = False
    synchronous: Synchronous = Synchronous()
    federation: Federation | None = None
    log_level: str = "INFO"
    image: str = ""
    alpine: bool = False
    token: str = ""
    file_stage_in: bool = False
    input: tuple[StorageIO, ...] = ()
    output: tuple[StorageIO, ...] = ()
    script: str = ""
    image_pull_secrets: tuple[str, ...] = ()
    expose: Expose = Expose()
    environment: Environment = Environment()
    annotations: dict[str, str] = {}
    vo: str = ""
    labels: dict[str, str] = {}
    storage_providers: dict[str, dict[str, dict[str, Any]]] = {}
    clusters: dict[str, ClusterRef] = {}
    owner: str = ""
    namespace: str = ""
    interlink_node_name: str = ""
    visibility: str = "private"
    allowed_users: tuple[str, ...] = ()
    isolation_level: str = ""
    bucket_list: tuple[str, ...] = ()
    mount: StorageIO = StorageIO()
    volume: VolumeRequest | None = None

    @property
    def is_worker(self) -> bool:
        """Another cluster's coordinator made this replica."""
        return self.annotations.get(FEDERATION_WORKER) == "true"

    @property
    def is_replica(self) -> bool:
        """It says that another cluster made it, in whatever role."""
        return any(mark in self.annotations for mark in RESERVED)

    @property
    def exposed(self) -> bool:
        return self.expose.port != 0

    def asks_nobody(self, *, private_too: bool = False) -> bool:
        """Whether everybody may visit its process: a public one that does not ask for credentials. `private_too` is
        OSCAR's rule, which does not look at the visibility."""
        return not self.expose.set_auth and (private_too or self.visibility == access.PUBLIC)

    @property
    def isolated_by_user(self) -> bool:
        return self.isolation_level.upper() == "USER"


def provider_of(io: StorageIO) -> tuple[str, str]:
    """("minio", "default") for "MinIO", "minio." and "minio.default"; the type is lower-cased, the id is not."""
    kind, _, ident = io.storage_provider.partition(".")
    return kind.strip().lower(), ident.strip() or "default"


def split_path(path: str) -> tuple[str, str]:
    """Bucket and folder of a normalised path."""
    bucket, _, folder = path.partition("/")
    return bucket, folder
