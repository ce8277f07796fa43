"""Settings of a manager whose services and jobs run in Kubernetes."""

import re
from ipaddress import ip_network
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

_NAME = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"


def _network(text: str) -> str:
    try:
        return str(ip_network(text))
    except ValueError:
        raise ValueError(f"{text[:80]!r} is not an address or a network such as 10.0.0.0/8") from None


class _Group(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Toleration(_Group):
    """A mark of nodes that our pods do not mind, as Kubernetes writes it."""

    key: str = ""
    """The mark; empty, with the operator Exists, means every one."""
    operator: Literal["Equal", "Exists"] = "Equal"
    """Whether the value counts."""
    value: str = ""
    """What the mark says."""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    """What is not minded; empty means all."""


class RouteSettings(_Group):
    kind: Literal["none", "ingress", "gateway"] = "none"
    """How callers reach public exposed services that ask nobody to sign in, beside the manager's own door: by an
    Ingress, or by an HTTPRoute of the Gateway API."""
    domain: str = Field("", pattern=r"^$|^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    """Each gets the name <service>.<domain>; let *.<domain> lead to the cluster."""
    ingress_class: str = ""
    """Which controller makes them; empty is the cluster's default."""
    gateway: str = ""
    """The Gateway, as namespace/name."""
    tls: bool = False
    """Whether callers use https, with a certificate for *.<domain> that the controller or the Gateway has."""
    callers: tuple[str, ...] = ()
    """Who may reach the pods of services with such a name: namespaces of the controller's pods, and networks. Empty:
    everybody, since everybody may call these services by their names."""

    @field_validator("callers")
    @classmethod
    def _callers(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(one if re.fullmatch(_NAME, one) else _network(one) for one in given)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.kind != "none" and not self.domain:
            raise ValueError(f"kind {self.kind} needs a domain")
        if self.kind == "gateway" and not self.gateway:
            raise ValueError("kind gateway needs the name of a gateway")
        return self


class NetworkSettings(_Group):
    policies: bool = True
    """Whether the manager makes NetworkPolicies where users' pods run, and repairs them. Without them every pod reaches
    everything that the cluster's network reaches: only where policies of your own do the same. The cluster's network
    plugin has to enforce them."""
    egress: Literal["public", "listed", "open"] = "public"
    """What users' pods may call, beside names, the cluster's own store and other pods of the same user: `public`
    addresses and what `egress.allow` lists; only what is `listed` there; or `open`, which is everything but metadata
    services, the API server and the nodes."""
    closed: tuple[str, ...] = ()
    """What pods never call, although a network that is allowed includes it. The API server and the nodes, as far as the
    manager may look at them, are always among these."""
    name_servers: tuple[str, ...] = ()
    """Where pods ask for names, if not at pods labelled k8s-app=kube-dns in kube-system, nor at the servers that the
    manager's own pod uses."""
    managers: tuple[str, ...] = ()
    """From where managers reach users' pods. Empty: pods of the manager's own namespace; with a kubeconfig, the address
    with which this manager reaches the API server."""

    @field_validator("closed", "name_servers", "managers")
    @classmethod
    def _networks(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_network(one) for one in given)


class KubernetesSettings(_Group):
    kubeconfig: Path | None = None
    """The file that says where the cluster is and who we are there; empty means the account of our own pod."""
    context: str = ""
    """Which context of that file; empty means its current one."""
    image: str = ""
    """Hansa's own image, which the nodes can pull: it brings jobs' files in and out. Needed with `kubernetes`."""
    pull_secrets: tuple[str, ...] = ()
    """Secrets in the manager's own namespace with which nodes pull that image, where its registry asks who pulls. They
    are copied to users' namespaces; with `namespaces` they have to be in each of these already. Users can run whatever
    these can pull: give one for this image alone."""
    pull_policy: Literal["", "Always", "IfNotPresent", "Never"] = ""
    """When users' images are pulled; empty is Kubernetes' own rule: always for `latest`, else if it is not there."""
    namespace: str = Field("hansa", pattern=_NAME)
    """Where the manager keeps what no pod of a user may reach: refresh tokens, keys and its lease."""
    namespaces: tuple[str, ...] = ()
    """If given, everything runs in these alone and no rights beyond them are needed: a user's own if it is among them,
    else the first. They have to be there. Users who share one are kept apart by NetworkPolicies and by the manager, but
    Kubernetes knows no quota of each, and a Secret for a registry serves all of them."""
    binding: str = ""
    """The ClusterRole that the manager binds to its own account in every namespace that it makes for a user. It has
    rights in these alone then. Empty: the account has rights in all namespaces, or `namespaces` are given."""
    shared: bool = False
    """Whether other managers of this cluster run beside this one, on the same PostgreSQL and store: one does the work,
    all answer, and when one dies another goes on."""
    lease_seconds: float = Field(15.0, ge=5, le=300)
    """How long the one that works may be silent before another takes over; shorter is quicker, and minds a slow API
    server more."""
    queue: str = ""
    """The ClusterQueue of Kueue that admits users' jobs, where the cluster has Kueue: each user's namespace gets a
    LocalQueue of it. Empty: Kubernetes starts jobs at once."""
    storage_class: str = ""
    """The storage class of users' volumes; empty is the cluster's default."""
    volumes_for_many_nodes: bool = False
    """Whether that class can give one volume to several nodes at once; most cannot, and then all pods that share a
    volume run on one node."""
    user: int = Field(10001, ge=1, le=2**31 - 1)
    """Scripts run as this user and group, never as root."""
    priority_class: str = ""
    """The priority class of jobs and services; empty is the cluster's default."""
    node_selector: dict[str, str] = {}
    """Labels that a node must have for our pods."""
    tolerations: tuple[Toleration, ...] = ()
    """Marks of nodes that our pods do not mind."""
    route: RouteSettings = RouteSettings()
    """A way to exposed services that does not pass the manager."""
    network: NetworkSettings = NetworkSettings()
    """What users' pods reach, and who reaches them."""
    pending_patience: float = Field(30.0, gt=0)
    """Seconds a job may wait for a node before it is given to a member that has room, where its service has any."""
    pull_patience: float = Field(300.0, gt=0)
    """Seconds a job may wait for its image before it fails."""
    idle: float = Field(300.0, gt=0)
    """Seconds a warm worker without calls is kept beyond the least that its service asks for."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.binding and self.namespaces:
            raise ValueError("binding is for namespaces that the manager makes; with namespaces it makes none")
        return self
