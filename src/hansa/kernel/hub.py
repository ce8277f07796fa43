"""Settings of the hub, and of a manager that belongs to one."""

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, model_validator

from hansa.kernel import endpoints

_EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - to listen at, not to be called


# Where a network is trusted with plain http, as `kernel.endpoints` reads it.
Places = Annotated[tuple[str, ...], AfterValidator(endpoints.places)]


class _Group(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class HubSettings(_Group):
    host: str = "127.0.0.1"
    """Where the hub's API for people answers; put TLS in front before you open it to others."""
    port: int = Field(7070, ge=0, le=65535)
    """Its port; 0 takes a free one."""
    members_host: str = "127.0.0.1"
    """Where managers reach the hub, over mutual TLS of its own authority; 0.0.0.0 lets other machines in."""
    members_port: int = Field(7443, ge=0, le=65535)
    """The port for managers; 0 takes a free one."""
    members_url: str = ""
    """What managers are told to call, e.g. the load balancer in front of several hubs; empty is the address above."""
    trust_domain: str = Field("hansa", max_length=59, pattern=r"^[a-z0-9]+(-+[a-z0-9]+)*(\.[a-z0-9]+(-+[a-z0-9]+)*)*$")
    """The SPIFFE trust domain: certificates name clusters spiffe://<trust domain>/cluster/<id>. Never change it."""
    key_file: Path | None = None
    """The key that seals the hub's secrets; empty is `<data>/hub.key`. All hubs of one database need the same."""
    heartbeat_every: float = Field(5.0, gt=0, le=3600)
    """Seconds between two reports of a cluster; shorter notices a loss sooner and costs the hub more."""
    suspect_after: int = Field(2, ge=1, le=100)
    """Missed heartbeats until a cluster is degraded."""
    dead_after: int = Field(3, ge=2, le=1000)
    """Missed heartbeats until a cluster is unreachable; nothing new is placed there."""
    certificate_hours: float = Field(24.0, gt=0)
    """Life of a cluster's certificate; it is renewed after half of it. Shorter limits what a stolen one is good for."""
    return_days: float = Field(14.0, ge=0)
    """How long after the end of its certificate a cluster that was away may still renew it by itself; then it needs a
    new token. Longer forgives longer outages, and gives a stolen key more time."""
    root_days: float = Field(365.0, gt=0)
    """Life of a root; a new one is made in time, and `hansa hub rotate-root` makes one at once."""
    lease_seconds: float = Field(5.0, ge=1.0)
    """After so long without a sign of life a hub's periodic work is taken over by another."""
    sync_every: float = Field(0.5, gt=0, le=10)
    """Seconds between two looks at what other hubs wrote; also how often heartbeats are written down, together."""
    keep_changes: int = Field(10_000, ge=100)
    """How many entries of what happened are kept."""
    plain_http: Places = ()
    """Networks (`10.0.0.0/8`) and names (`.lab`) whose clusters may have addresses with plain http, as in a laboratory;
    everywhere else they need https. Managers want the same in their `federation.plain_http` before they send
    anything there."""

    @property
    def reached_at(self) -> str:
        """What managers call; empty if it cannot be told from the settings, as of a port that is not chosen yet."""
        if self.members_url or self.members_host in _EVERYWHERE or not self.members_port:
            return self.members_url
        host = f"[{self.members_host}]" if ":" in self.members_host else self.members_host
        return f"https://{host}:{self.members_port}"

    @property
    def same_machine(self) -> bool:
        """Whether only who lives on this machine can be a member, so that loopback means the same to all of them."""
        host = urlsplit(self.members_url).hostname if self.members_url else self.members_host
        return endpoints.is_loopback(f"https://[{host}]" if host and ":" in host else f"https://{host}")

    @model_validator(mode="after")
    def _in_order(self) -> "HubSettings":
        if self.dead_after <= self.suspect_after:
            raise ValueError("dead_after must be greater than suspect_after")
        return self


class MembershipSettings(_Group):
    hub: str = ""
    """The hub to join at the start, https://host:port; empty waits for `hansa cluster join`."""
    token: SecretStr = SecretStr("")
    """The token to join with; needed once, the certificate is kept in the data folder."""
    name: str = ""
    """The cluster's name for people; empty is its id."""
    description: str = ""
    """What the cluster is for, in a sentence."""
    region: str = ""
    """Where it is, e.g. eu-north; placement and searches go by it."""
    zone: str = ""
    """Where in the region."""
    latitude: float | None = Field(None, ge=-90, le=90)
    """For maps and distances."""
    longitude: float | None = Field(None, ge=-180, le=180)
    """For maps and distances."""
    metadata: dict[str, str] = {}
    """Labels of your own; selectors find clusters by them."""
    cpu_hour: float = Field(0.0, ge=0)
    """What one core costs for an hour."""
    memory_hour: float = Field(0.0, ge=0)
    """What one GiB of memory costs for an hour."""
    link_probe_every: float = Field(15.0, ge=0.1)
    """Seconds between two looks at each other cluster of the federation."""
    most_reports: int = Field(10_000, ge=10)
    """How many reports are kept for a hub that is out of reach; beyond, the oldest are dropped and counted."""
