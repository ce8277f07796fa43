"""Policies of a federation: typed documents with versions, and what a new one would change."""

from typing import Annotated, Any, Literal, get_args

from msgspec import field

from hansa.messages import Message, Request, known

PolicyKind = Literal["federation", "placement", "network", "migration", "admission"]
AnyPolicyKind = Annotated[str, known(get_args(PolicyKind))]


class NewPolicy(Request, frozen=True, kw_only=True):
    kind: PolicyKind
    rules: dict[str, Any]  # read as the kind's own type
    comment: str = ""
    expected: int | None = None


class Policy(Message, frozen=True, kw_only=True):
    name: str
    kind: AnyPolicyKind
    version: int
    rules: dict[str, Any]
    author: str
    comment: str
    created: float
    removed: bool = False


class Policies(Message, frozen=True, kw_only=True):
    age: float  # seconds since the hub last was in step with its database
    policies: tuple[Policy, ...]


class PolicyVersions(Message, frozen=True, kw_only=True):
    versions: tuple[Policy, ...]  # newest first


class Effect(Message, frozen=True, kw_only=True):
    """One thing that would be different."""

    subject: str  # a cluster, a pair of clusters, or the federation
    before: str
    after: str


class DryRun(Message, frozen=True, kw_only=True):
    policy: str
    version: int  # it would get
    differences: tuple[str, ...]  # of the rules: "heartbeat.every: 5 -> 10"
    effects: tuple[Effect, ...]
    warnings: tuple[str, ...] = field(default_factory=tuple)
