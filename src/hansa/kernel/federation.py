"""Settings of what a manager does with other clusters."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from hansa.kernel.hub import Places


class _Group(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KnownCluster(_Group):
    endpoint: str = Field(pattern=r"^https?://[^\s?#]+$")
    """Where its manager answers."""
    verify: bool = True
    """Whether its TLS certificate is checked."""
    kind: Literal["", "hansa", "oscar"] = ""
    """What its manager is. Empty: it is asked, and one that was a Hansa once is never taken for an OSCAR. `oscar` lets
    it be shown the access tokens of its services' owners, as OSCAR's own manager needs them."""
    shares_store: bool = False
    """Whether it has the same object store as this cluster, one that lends no keys. It is believed then what a job that
    it hands over may read and write there, whoever the buckets belong to."""


class FederationSettings(_Group):
    clusters: dict[str, KnownCluster] = {}
    """The clusters that may be sent credentials, by id; an FDL cannot point anywhere else."""
    allowed_clusters: tuple[str, ...] = ()
    """Further addresses an FDL may give for a cluster id of its own choice; credentials of its owner may go there."""
    allowed_endpoints: tuple[str, ...] = ()
    """Addresses that members of the type `endpoint` may have: they get events, and no credentials."""
    plain_http: Places = ()
    """Networks (`10.0.0.0/8`) and names (`.lab`) where clusters the hub tells of may be sent credentials by plain http:
    whoever listens there can use them. Without, only https and this machine's own loopback are used."""
    call_timeout: float = Field(20.0, gt=0)
    """Seconds one call to a member may take; OSCAR's own limit is 20."""
    probe_ttl: float = Field(5.0, ge=0.1)
    """Seconds a member's status is believed; shorter decides on fresher figures and costs calls."""
    probe_timeout: float = Field(2.0, gt=0)
    """Seconds to wait for a member's status before it counts as absent."""
    rescheduler_threshold: float = Field(10.0, ge=0.5)
    """Seconds a job waits here before it is offered to members again; a service may set its own."""
    handover_patience: float = Field(20.0, gt=0)
    """Seconds to find out whether a member took a job when its answer was lost, before another is tried."""
    lost_after: float = Field(60.0, ge=1)
    """Seconds a member with one of our jobs may be silent before the job is run elsewhere."""
    wait_at_members: float = Field(86_400, ge=60)
    """Seconds in which a member has to begin one of our jobs; then it is taken back and offered to others. Once it runs
    there, it has the time that the service's jobs have here, at most `jobs.time_limit`; a job with files has that limit
    twice more, once for its inputs to come and once for its outputs to go."""
    hop_limit: int = Field(4, ge=1, le=32)
    """How many clusters a job may pass through."""
    load_formula: Literal["free-cpu", "relative"] = "free-cpu"
    """`free-cpu` maps 0 to 32 free cores to 100 to 0; `relative` is the later upstream formula, by shares."""
    oscar_members: bool = True
    """Whether services may have members that take no keys of their own: OSCAR's own managers, and older Hansas that
    these settings call `oscar`. With each job, and for their status, they are shown an access token of the service's
    owner, good in all clusters. A hub can forbid it, and not allow what these settings forbid; so with the next two."""
    oscar_refresh_tokens: bool = True
    """Whether such members of a mesh are given the service's refresh token, as OSCAR does. OSCAR's manager hands it to
    every job of the service there, so whoever can run code in one of them can act as the owner until it is revoked."""
    restore_replicas: bool = True
    """Whether a replica that its member does not know any more is made again by itself. That takes an access token of
    the owner, so a hostile member could get one by losing its replica, or by refusing the key when one is changed or
    removed. Without, such a member is told; its owner removes it from the federation and adds it again."""
    repair_every: float = Field(60.0, ge=0.1)
    """Seconds between passes that compare members with the coordinator's definition and repair them."""
    token_rotation_days: float = Field(30.0, gt=0)
    """Days after which a stored refresh token is exchanged for a new one even if nobody needed it."""
    keep_receipts: float = Field(2_592_000, ge=3600)
    """Seconds that a job of another cluster, and keys to that cluster's store, are kept after the job's end for an
    origin that did not come back yet; 30 days. One that comes back later does not learn how its job ended."""
