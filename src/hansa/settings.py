"""One typed tree of settings, from `hansa.toml` and `HANSA_*` variables, read once at start.

Every field has a default that works on a laptop and a sentence on its trade-off; `docs/reference/settings.md` is
made from them. A wrong or unknown setting stops the start with one clear line.
`HANSA_HTTP__PORT=9000` sets `http.port`; lists and tables are given as JSON.
"""

import json
import os
import secrets
import tomllib
from collections.abc import Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Literal, Self, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from hansa.kernel import errors, near_names, quantities
from hansa.kernel.federation import FederationSettings
from hansa.kernel.hub import HubSettings, MembershipSettings
from hansa.kernel.issuer import IssuerSettings
from hansa.kernel.kubernetes import KubernetesSettings
from hansa.kernel.quota import Amount, QuotaSettings
from hansa.kernel.tenants import EgressSettings, ExposedSettings

# Variables the command line reads for itself; they are no settings of a server.
_CLIENT_VARIABLES = frozenset(
    {
        "HANSA_CLUSTER",
        "HANSA_URL",
        "HANSA_USER",
        "HANSA_PASSWORD",
        "HANSA_TOKEN",
        "HANSA_CONFIG",
        "HANSA_HUB",
        "HANSA_HUB_USER",
        "HANSA_HUB_PASSWORD",
        "HANSA_HUB_TOKEN",
        "HANSA_HUB_PASSPHRASE",
        "HANSA_PROFILES",
        "HANSA_PLAYGROUND",
    }
)
# Variables of a checkout: what its tests and its setup are told.
_CHECKOUT_PREFIXES = ("HANSA_TEST_", "HANSA_SETUP_")
SMALLEST_DISK = 16 * 2**20


class BadSetting(errors.HansaError):
    """A setting is wrong, unknown or missing."""

    code, kind = "settings.invalid", errors.Kind.INVALID


class _Group(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ClusterSettings(_Group):
    id: str = Field("hansa", pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")
    """The cluster's own name; peers and FDL files use it as `cluster_id`."""
    services_namespace: str = Field("oscar-svc", pattern=r"^[a-z0-9]([a-z0-9-]{0,14}[a-z0-9])?$")
    """Where the admin's services live and the prefix of every user's namespace; keep it equal on all members."""
    public_url: str = ""
    """How others reach this manager; empty means the address it listens on."""


class HttpSettings(_Group):
    host: str = "127.0.0.1"
    """The address to listen on; 0.0.0.0 lets other machines in, then put TLS in front."""
    port: int = Field(8080, ge=0, le=65535)
    """The port to listen on; 0 takes a free one."""
    body_limit: int = Field(16 * 2**20, ge=1024)
    """The largest accepted body of a `/job` or `/run` call in bytes; larger inputs belong into a bucket. The
    definition of a service has 4 MiB at most."""
    bodies_limit: int = Field(256 * 2**20, ge=2**20)
    """Bytes of bodies and of long answers that are in memory at once, of all requests together; room for four of the
    largest bodies there always is. Nobody may have more under way than is left for the others; beyond, requests are
    refused with 429 or 503 and may come again. Of a hub too."""
    wrong_passwords: int = Field(30, ge=1)
    """Wrong passwords a minute that one address may send; more are answered 429 for a while. Of a hub too."""
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")
    """Proxies in front: the last address in their `X-Forwarded-For` is the client's. They must set that header."""
    metrics_token: SecretStr = SecretStr("")
    """A bearer token for Prometheus that opens `/metrics` and nothing else; empty is none, and the admin may."""

    @field_validator("proxies")
    @classmethod
    def _networks(cls, proxies: tuple[str, ...]) -> tuple[str, ...]:
        for one in proxies:
            try:
                ip_network(one)
            except ValueError:
                raise ValueError("write addresses or networks, such as 10.0.0.0/8") from None
        return proxies


class AdminSettings(_Group):
    user: str = Field("admin", min_length=1, pattern=r"^[^:]+$")
    """The Basic user with all rights."""
    password: SecretStr = SecretStr("")
    """Its password; empty means: make one at the first start and keep it in `<data>/admin-password`."""


class DatabaseSettings(_Group):
    url: str = ""
    """Empty is SQLite in the data folder; `postgresql://user:password@host/name` shares state between machines."""
    pool: int = Field(10, ge=1, le=200)
    """Connections to PostgreSQL; more allow more concurrent requests and cost the server memory."""

    @field_validator("url")
    @classmethod
    def _a_database_we_speak(cls, url: str) -> str:
        if url and urlsplit(url).scheme.partition("+")[0] not in ("postgresql", "postgres", "sqlite"):
            raise ValueError("write postgresql://user:password@host/name, or nothing for SQLite")
        return url


class StorageSettings(_Group):
    kind: Literal["embedded", "minio", "s3"] = "embedded"
    """`embedded` starts SeaweedFS beside the manager; `minio` and `s3` use the server at `endpoint`."""
    endpoint: str = ""
    """The S3 address for `minio` and `s3`."""
    host: str = "127.0.0.1"
    """Where the embedded store's S3 port answers, for members of a federation too. Its inner ports stay on loopback."""
    port: int = Field(0, ge=0, le=65535)
    """Its port there; 0 is the store's own number, which stays the same over restarts."""
    public_endpoint: str = ""
    """What clients are told in `/system/config` and in presigned links; empty means the same address."""
    access_key: str = ""
    """The administrator's key for `minio` and `s3`; the embedded store makes its own."""
    secret_key: SecretStr = SecretStr("")
    """What belongs to `access_key`; better given as a variable than in a file others can read."""
    region: str = "us-east-1"
    """The region requests are signed for; most stores that are not Amazon's take any."""
    verify: bool = True
    """Whether the store's TLS certificate is checked."""
    reconcile_every: float = Field(60.0, gt=0)
    """Seconds between listings that look for uploads no event told of; shorter finds them sooner and costs lists."""
    link_longest: int = Field(86_400, ge=1, le=604_800)
    """Seconds that a presigned link is valid at most; who asks for more gets this. With `kind` s3 it is 900 at most,
    for such a link cannot be taken back."""
    quota_every: float = Field(60.0, gt=0)
    """Seconds between counts of all buckets with a quota; what is written directly to MinIO meanwhile can exceed it.
    The embedded store tells of writes, so there a full bucket is closed within about a second."""

    @field_validator("endpoint", "public_endpoint")
    @classmethod
    def _an_address(cls, url: str) -> str:
        if url and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname):
            raise ValueError("write http://host:port or https://host")
        return url

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.kind != "embedded" and not (self.endpoint and self.access_key and self.secret_key):
            raise ValueError(f"kind {self.kind} needs endpoint, access_key and secret_key")
        return self


class OidcSettings(_Group):
    issuers: tuple[IssuerSettings, ...] = ()
    """The identity providers whose tokens are accepted."""
    home: str = ""
    """The issuer whose people have their plain subject as uid; empty: the first one. Fixed at the first start."""
    users_admin: tuple[str, ...] = ()
    """Uids with the admin's view of `/system/status` and `/system/logs`; see the guide for those of other issuers."""

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        addresses = [address for issuer in self.issuers for address in (issuer.url, *issuer.formerly)]
        if twice := [address for address in addresses if addresses.count(address) > 1]:
            raise ValueError(f"the address {twice[0]} stands in oidc.issuers twice")
        return self

    @field_validator("home")
    @classmethod
    def _as_in_issuers(cls, home: str) -> str:
        return home.rstrip("/")


class SandboxSettings(_Group):
    runtime: Literal["host", "podman"] = "host"
    """`host` runs scripts in this machine's own userland; `podman` runs the image the service names."""
    uid_base: int = Field(310_000, ge=1000, le=2**31)
    """First of 256 user ids that belong to this manager's jobs alone; managers on one machine need distinct ranges.
    Volumes belong to the group of this number: after a change the next start gives them to the new one."""
    network: Literal["none", "host"] = "none"
    """What a job may reach: nothing, or all this machine reaches (then also the store's unprotected inner ports)."""
    processes: int = Field(256, ge=8, le=32768)
    """How many processes one job may have."""


class JobSettings(_Group):
    cpu: Amount = ""
    """How much CPU jobs may use together ("3500m"); empty means all of this machine."""
    memory: Amount = ""
    """How much memory jobs may use together ("4Gi"); empty means nine tenths of this machine."""
    disk: Amount = ""
    """How much disk runs and volumes on this machine may hold together ("200Gi"); empty means all that is free."""
    disk_reserve: Amount = "1Gi"
    """What always stays free on the disk of the data folder, for the manager itself: runs wait rather than take it, and
    the embedded object store takes no uploads while there is less."""
    disk_per_run: Amount = "1Gi"
    """Disk that one job, call or exposed instance may write (`/job` and a mounted bucket folder); at least 16Mi. A
    service gets more by `ephemeral_storage_request`. Each run holds all of it while it lives: a large value lets fewer
    of them run at a time. More than the disk of the data folder has for runs is refused; the default is less there:
    half of what it has."""
    time_limit: float = Field(86_400, ge=1)
    """Seconds after which a job is ended; a service may ask for less with the annotation `hansa/time-limit`. On this
    machine the files of a job have as long to come, and as long to go, whatever its service asked for."""
    run_limit: float = Field(300, ge=1)
    """Seconds a synchronous run may take, waiting included."""
    page_size: int = Field(70, ge=1, le=1000)
    """Jobs on one page of a listing."""
    keep: float = Field(2_592_000, ge=3600)
    """Seconds a finished job and its log are kept; 30 days as in OSCAR."""
    log_limit: int = Field(10 * 2**20, ge=4096)
    """Bytes of log kept for one job; what a script prints beyond is dropped and said so."""
    logs_per_owner: int = Field(2**30, ge=65_536)
    """Bytes that the logs of one owner's jobs may take together, in blocks of 4096. For newer ones the logs of that
    owner's ended jobs are dropped, the oldest first, and say so when they are read; if none is left, what a running job
    prints is dropped and said so. The admin is not limited by it."""
    attempts: int = Field(3, ge=1, le=20)
    """How often a job is started again after the manager died under it."""
    queue_limit: int = Field(100_000, ge=1)
    """Jobs that may wait at once; beyond, submissions are refused with 503 instead of growing without bound."""
    queue_limit_per_owner: int = Field(10_000, ge=1)
    """Jobs of one owner that may be open (accepted and not ended) at once, those at members included; beyond,
    submissions are refused with 503 and uploads wait in their bucket. The admin is not limited by it."""
    queue_size_per_owner: int = Field(256 * 2**20, ge=1)
    """Bytes that the bodies of one owner's open jobs may come to; they are kept in the database until a job ends."""

    @field_validator("disk_per_run")
    @classmethod
    def _a_usable_disk(cls, text: str) -> str:
        if quantities.size(text or "0", what="disk") < SMALLEST_DISK:
            raise ValueError("must be at least 16Mi")
        return text


class ImageSettings(_Group):
    allowed: tuple[str, ...] = ()
    """If not empty, a service's image must contain one of these strings."""


class AuditSettings(_Group):
    keep: float = Field(34_560_000, ge=86_400)
    """Seconds the trail of who used a refresh token is kept; 400 days, so that a year can be looked back upon."""


class LogSettings(_Group):
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important line that is written; `info` has one for every request."""
    form: Literal["auto", "json", "text"] = "auto"
    """`json` for collectors, `text` for people; `auto` looks whether a terminal is attached."""


class Settings(_Group):
    role: Literal["manager", "hub", "both"] = "manager"
    """What this process is: one cluster's manager, the hub of a federation, or both in one."""
    driver: Literal["local", "kubernetes"] = "local"
    """What runs services and jobs: this machine, or the Kubernetes cluster of the settings `kubernetes`."""
    data: Path = Path("hansa-data")
    """The folder that holds everything this manager must remember."""

    @field_validator("data", mode="before")
    @classmethod
    def _somewhere(cls, data: Any) -> Any:
        if isinstance(data, str) and not data.strip():
            raise ValueError("must not be empty")
        return data

    cluster: ClusterSettings = ClusterSettings()
    http: HttpSettings = HttpSettings()
    exposed: ExposedSettings = ExposedSettings()
    admin: AdminSettings = AdminSettings()
    database: DatabaseSettings = DatabaseSettings()
    storage: StorageSettings = StorageSettings()
    oidc: OidcSettings = OidcSettings()
    sandbox: SandboxSettings = SandboxSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
    jobs: JobSettings = JobSettings()
    quotas: QuotaSettings = QuotaSettings()
    images: ImageSettings = ImageSettings()
    egress: EgressSettings = EgressSettings()
    federation: FederationSettings = FederationSettings()
    audit: AuditSettings = AuditSettings()
    hub: HubSettings = HubSettings()
    membership: MembershipSettings = MembershipSettings()
    log: LogSettings = LogSettings()

    @model_validator(mode="after")
    def _with_a_door_of_its_own(self) -> Self:
        if self.exposed.url and urlsplit(self.exposed.url).netloc == urlsplit(self.cluster.public_url).netloc:
            raise ValueError("exposed.url must be another address than cluster.public_url: only pages answer there")
        return self

    @model_validator(mode="after")
    def _with_an_image(self) -> Self:
        if self.driver == "kubernetes" and not self.kubernetes.image:
            raise ValueError("driver kubernetes needs kubernetes.image")
        return self


def load(path: Path | None = None, env: Mapping[str, str] | None = None) -> Settings:
    """The settings from a file (if any) with variables on top. Raises `BadSetting` with one clear line."""
    env = os.environ if env is None else env
    if path is None and env.get("HANSA_CONFIG"):
        path = Path(env["HANSA_CONFIG"])
    tree = _from_file(path) if path else {}
    for name in sorted(env):
        if not name.startswith("HANSA_") or name in _CLIENT_VARIABLES or name.startswith(_CHECKOUT_PREFIXES):
            continue
        _place(tree, name, env[name])
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise BadSetting(*_explain(error)) from None


def read_json(document: bytes) -> Settings:
    """Settings that came as JSON, by its rules: a list is a list, and "5" is no number. Raises `BadSetting`."""
    try:
        return Settings.model_validate_json(document, strict=True)
    except ValidationError as error:
        raise BadSetting(*_explain(error)) from None


def admin_password(settings: Settings) -> str:
    """The admin's password: the one given, else one made at the first start and kept in the data folder."""
    given = settings.admin.password.get_secret_value()
    if given:
        return given
    kept = settings.data / "admin-password"
    if not kept.exists():
        settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fresh, "w") as file:
            file.write(secrets.token_urlsafe(18))
    return kept.read_text().strip()


def _from_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise BadSetting(f"there is no settings file {path}", hint="check --config or HANSA_CONFIG") from None
    except OSError as error:
        raise BadSetting(f"the settings file {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadSetting(f"{path} is not valid TOML: {error}") from None


def _place(tree: dict[str, Any], name: str, text: str) -> None:
    steps = name.removeprefix("HANSA_").lower().split("__")
    node: Any = tree
    model: Any = Settings
    for depth, step in enumerate(steps):
        field = model.model_fields.get(step) if isinstance(model, type) and issubclass(model, BaseModel) else None
        if field is None:
            raise BadSetting(f"{name} is not a setting", hint=_nearest(name))
        if depth == len(steps) - 1:
            node[step] = _value(name, text, field.annotation)
            return
        model = field.annotation
        node = node.setdefault(step, {})
        if not isinstance(node, dict):
            raise BadSetting(f"setting {step}: must be a table", hint=f"{name} is one of its settings")


def _value(name: str, text: str, annotation: Any) -> Any:
    if getattr(annotation, "__origin__", None) in (tuple, dict) or (
        isinstance(annotation, type) and issubclass(annotation, BaseModel)
    ):
        try:
            return json.loads(text)
        except (json.JSONDecodeError, RecursionError):
            raise BadSetting(f"{name} must be JSON", hint=f"for example {json.dumps(_example(annotation))}") from None
    return text


def _example(annotation: Any) -> Any:
    """What a setting of this kind may look like: of a table, the fields that show an example, else its first."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is tuple:
        several = inner[0] is str
        return ["a", "b"] if several else [_example(inner[0])]
    if origin is dict:
        return {"name": _example(inner[1])}
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields
        shown = {name: field.examples[0] for name, field in fields.items() if field.examples}
        return shown or {name: field.get_default() for name, field in list(fields.items())[:1]}
    return "a"


def names(model: type[BaseModel] = Settings, prefix: str = "") -> list[str]:
    """Every setting by its dotted name."""
    found: list[str] = []
    for key, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found += names(kind, f"{prefix}{key}.")
        else:
            found.append(prefix + key)
    return found


def _nearest(variable: str) -> str:
    known = ["HANSA_" + name.upper().replace(".", "__") for name in names()]
    close = near_names.nearest(variable, known, cutoff=0.5)
    return f"did you mean {close}?" if close else "docs/reference/settings.md lists them all"


# What pydantic says of kinds in Python's words, in ours. Neither shows the value: it may be a secret.
_MUST_BE = {
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "dict_type": "must be a table",
    "tuple_type": "must be a list",
    "path_type": "must be a path",
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a smaller number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "missing": "is missing",
}


def _explain(error: ValidationError) -> tuple[str, ...]:
    first = error.errors(include_input=False, include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        known = [*names(), *Settings.model_fields]
        close = near_names.nearest(name, known, cutoff=0.5)
        asked = f": did you mean {close}?" if close else ": docs/reference/settings.md lists them all"
        return (f"{name} is not a setting{asked}",)
    told = first["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    told = _MUST_BE.get(first["type"], told[:1].lower() + told[1:])
    return (f"setting {name}: {told}" if name else told,)  # what concerns several has no name of its own
