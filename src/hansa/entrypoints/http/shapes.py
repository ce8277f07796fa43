"""What the answers look like that are put together from parts: told in the OpenAPI document, made elsewhere.

Answers that one route builds as a struct have that struct beside the route. These are the others; a journey compares
them with what a running manager really says.
"""

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from hansa.services import Service


class Part(Struct, frozen=True, kw_only=True):
    """An object of an answer; clients take fields they do not know."""


class Ready(Part, frozen=True, kw_only=True):
    ready: bool
    missing: tuple[str, ...]


class Backend(Part, frozen=True, kw_only=True):
    name: str
    version: str


class Info(Part, frozen=True, kw_only=True):
    version: str
    git_commit: str
    architecture: str
    kubernetes_version: str
    serverless_backend: Backend


class ClusterConfig(Part, frozen=True, kw_only=True):
    name: str
    namespace: str
    services_namespace: str
    controller_service_account: str
    gpu_available: bool
    interLink_available: bool  # noqa: N815 - the wire's spelling
    serverless_backend: str
    yunikorn_enable: bool
    kueue_enable: bool
    volume_enable: bool
    oidc_groups: tuple[str, ...]
    minio_quota_enabled: bool


class StoreAccess(Part, frozen=True, kw_only=True):
    endpoint: str
    verify: bool
    access_key: str
    secret_key: str
    region: str


class Config(Part, frozen=True, kw_only=True):
    config: ClusterConfig
    minio_provider: StoreAccess
    allowed_image_repositories: tuple[str, ...]


class CpuFigures(Part, frozen=True, kw_only=True):
    """Millicores, despite the names."""

    total_free_cores: int
    max_free_on_node_cores: int
    total_schedulable_cores: int
    total_schedulable_on_node_cores: int


class MemoryFigures(Part, frozen=True, kw_only=True):
    total_free_bytes: int
    max_free_on_node_bytes: int
    total_schedulable_bytes: int
    max_schedulable_on_node_bytes: int


class GpuFigures(Part, frozen=True, kw_only=True):
    total_gpu: int


class ClusterFigures(Part, frozen=True, kw_only=True):
    cpu: CpuFigures
    memory: MemoryFigures
    gpu: GpuFigures


class Condition(Part, frozen=True, kw_only=True):
    type: str
    status: bool


class NodeStatus(Part, frozen=True, kw_only=True):
    name: str
    cpu: dict[str, int]  # zeros are left out
    memory: dict[str, int]
    gpu: int
    is_interlink: bool
    status: str
    conditions: tuple[Condition, ...]


class ClusterStatus(Part, frozen=True, kw_only=True):
    nodes_count: int
    metrics: ClusterFigures
    nodes: tuple[NodeStatus, ...]


class ManagerDeployment(Part, frozen=True, kw_only=True):
    available_replicas: int
    ready_replicas: int
    replicas: int
    creation_timestamp: str
    strategy: str
    labels: dict[str, str]


class Pods(Part, frozen=True, kw_only=True):
    total: int
    states: dict[str, int]


class Oidc(Part, frozen=True, kw_only=True):
    enabled: bool
    issuers: tuple[str, ...]
    groups: tuple[str, ...]


class ManagerStatus(Part, frozen=True, kw_only=True):
    deployment_name: str
    ready: bool
    deployment: ManagerDeployment
    jobs_count: int
    pods: Pods
    oidc: Oidc


class StoreStatus(Part, frozen=True, kw_only=True):
    buckets_count: int
    total_objects: int


class Status(Part, frozen=True, kw_only=True):
    cluster: ClusterStatus
    oscar: ManagerStatus
    minio: StoreStatus


class DeploymentSummary(Part, frozen=True, kw_only=True):
    state: str
    reason: str | UnsetType = UNSET
    last_transition_time: str | UnsetType = UNSET
    active_instances: int
    affected_instances: int
    resource_kind: str


class DeploymentShown(DeploymentSummary, frozen=True, kw_only=True):
    service_name: str
    namespace: str | UnsetType = UNSET


class LogEntry(Part, frozen=True, kw_only=True):
    timestamp: str | UnsetType = UNSET
    message: str


class DeploymentLog(Part, frozen=True, kw_only=True):
    service_name: str
    available: bool
    message: str | UnsetType = UNSET
    entries: tuple[LogEntry, ...]


class VolumeStatus(Part, frozen=True, kw_only=True):
    enabled: bool
    name: str | UnsetType = UNSET
    phase: str | UnsetType = UNSET
    error: str | UnsetType = UNSET


class UploadsStatus(Part, frozen=True, kw_only=True):
    """Uploads that are not jobs yet, and why; shown to the owner while there are some."""

    waiting: bool
    reason: str


class ServiceShown(Service, frozen=True, kw_only=True):
    """The definition as it is kept, and what became of it."""

    volume_status: VolumeStatus
    uploads_status: UploadsStatus | UnsetType = UNSET
    deployment: DeploymentSummary | UnsetType = UNSET


class Credentials(Part, frozen=True, kw_only=True):
    """How a service stands with its refresh token; never the token."""

    service: str
    state: str  # ok | expired-or-revoked | issuer-unreachable | misconfigured | none
    since: str | None
    sentence: str
    hint: str
    source: str  # own | coordinator | none
    issuer: str
    rotates: bool | None  # whether the issuer was seen to replace the refresh token
    obtained: str | None
    renewed: str | None
    rotation_due: str | None
    access_expires: str | None


class MemberShown(Part, frozen=True, kw_only=True):
    member: str  # cluster/service
    reachable: bool
    in_sync: bool
    last_seen: str | None
    definition: str  # which definition of the coordinator it was made from
    trouble: str  # why it is not in sync
    way: str  # how it is asked: `key`, by secrets of its own; `token`, as OSCAR, by its owner's access token; or ""


class Members(Part, frozen=True, kw_only=True):
    topology: str
    members: tuple[dict[str, Any], ...] | None
    state: tuple[MemberShown, ...] | UnsetType = UNSET  # these two only if asked for, to its owner and the admin
    credentials: Credentials | UnsetType = UNSET
    warnings: tuple[dict[str, str], ...] | UnsetType = UNSET


class JobShown(Part, frozen=True, kw_only=True):
    status: str
    creation_time: str | UnsetType = UNSET
    start_time: str | UnsetType = UNSET
    finish_time: str | UnsetType = UNSET


class JobListing(Part, frozen=True, kw_only=True):
    jobs: dict[str, JobShown]
    next_page: str | UnsetType = UNSET
    remaining_jobs: int | UnsetType = UNSET


class Execution(Part, frozen=True, kw_only=True):
    timestamp: str
    status: int
    latency: str
    client_ip: str
    method: str
    path: str
    user: str
    raw: str


class Executions(Part, frozen=True, kw_only=True):
    logs: tuple[Execution, ...]


class Amounts(Part, frozen=True, kw_only=True):
    """CPU in millicores, memory in bytes."""

    cpu: int
    memory: int


class JobCounts(Part, frozen=True, kw_only=True):
    waiting: int
    running: int


class Node(Part, frozen=True, kw_only=True):
    cluster: str
    name: str
    capacity: Amounts
    promised: Amounts
    used: Amounts
    jobs: JobCounts
    runtime: str
    isolation: dict[str, Any]
    drift: tuple[dict[str, Any], ...]  # what others did to what is ours there, the latest last
