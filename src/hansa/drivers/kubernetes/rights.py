"""What does a manager ask of Kubernetes, and why? Pure data.

The Helm chart and `docs/reference/kubernetes-rights.md` say the same, which a test keeps. `needed` gives the rights of
one way to run; a `Right` can say itself as the attributes of SelfSubjectAccessReviews, by which `hansa doctor` can find
out whether the account has it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum


class Scope(Enum):
    """Where a right is needed."""

    LOOK = "look"  # in the whole cluster: what is nobody's secret
    CLUSTER = "cluster"  # in the whole cluster, where users get namespaces of their own
    BIND = "bind"  # the same, where the manager has rights in these alone (`kubernetes.binding`)
    MADE = "made"  # in namespaces that the manager made
    USERS = "users"  # in users' namespaces: given ones, those that the manager made, or all
    OWN = "own"  # in the manager's own namespace, `kubernetes.namespace`


@dataclass(frozen=True, slots=True)
class Right:
    scope: Scope
    group: str
    """Of the API; "" is the core."""
    resource: str
    """With its part, as in pods/log."""
    verbs: tuple[str, ...]
    why: str
    needed: bool = True
    """False: without it less is known, and everything works."""
    only: str = ""
    """If given, the one object of that kind."""

    def reviews(self, namespace: str) -> Iterator[dict[str, str]]:
        """One question for each verb, as `resourceAttributes`; `namespace` "" asks for all of them."""
        resource, _, part = self.resource.partition("/")
        place = {} if self.scope in WIDE or not namespace else {"namespace": namespace}
        about = {"group": self.group, "resource": resource, "subresource": part, "name": self.only, **place}
        for verb in self.verbs:
            asked = {"verb": verb, **about}
            yield {name: text for name, text in asked.items() if text or name == "group"}


WIDE = frozenset({Scope.LOOK, Scope.CLUSTER, Scope.BIND})
BOUND_ROLE = "the role of users' namespaces"  # stands for `kubernetes.binding`
_LOOK, _CLUSTER, _BIND, _MADE, _USERS, _OWN = Scope
_RBAC = "rbac.authorization.k8s.io"

RIGHTS: tuple[Right, ...] = (
    Right(_CLUSTER, "", "namespaces", ("get", "create", "patch"), "users get namespaces of their own, marked so"),
    Right(_BIND, "", "namespaces", ("list",), "in which of them the manager has rights, and needs them"),
    Right(
        _BIND, _RBAC, "rolebindings", ("get", "create"), "the manager comes to its rights in a namespace that it made"
    ),
    Right(_BIND, _RBAC, "clusterroles", ("bind",), "that one role and no other", only=BOUND_ROLE),
    Right(_MADE, "", "resourcequotas", ("create", "patch", "delete"), "a user's quota holds in Kubernetes, too"),
    Right(_MADE, "", "limitranges", ("create", "patch", "delete"), "what a container counts that says nothing"),
    Right(
        _MADE,
        "kueue.x-k8s.io",
        "localqueues",
        ("create", "patch"),
        "users' jobs stand in line for Kueue, with `kubernetes.queue`",
        False,
    ),
    Right(_LOOK, "", "nodes", ("list",), "what there is: how much jobs may use, and what a federation is told"),
    Right(_LOOK, "metrics.k8s.io", "nodes", ("list",), "how busy nodes really are, where it is measured", False),
    Right(
        _LOOK,
        "discovery.k8s.io",
        "endpointslices",
        ("get",),
        "where the API server is, which users' pods must not call",
        False,
        only="kubernetes",
    ),
    Right(
        _USERS,
        "",
        "secrets",
        ("get", "list", "watch", "create", "patch", "delete"),
        "a job's call, keys and script; a service's variables; they own what is made of them",
    ),
    Right(
        _USERS,
        "",
        "configmaps",
        ("get", "list", "watch", "create", "patch", "delete"),
        "the definition of every service, as OSCAR's tools look for it",
    ),
    Right(
        _USERS,
        "",
        "pods",
        ("list", "watch", "create", "delete"),
        "warm workers are pods; how jobs and services are; an end that comes soon for a job that is cancelled",
    ),
    Right(_USERS, "", "pods/log", ("get",), "what jobs and services print"),
    Right(_USERS, "", "services", ("create", "patch", "delete"), "other pods find an exposed service by its name"),
    Right(
        _USERS,
        "",
        "persistentvolumeclaims",
        ("get", "list", "watch", "create", "patch", "delete"),
        "users' volumes",
    ),
    Right(_USERS, "", "events", ("list",), "why a user's volume is not there yet", False),
    Right(_USERS, "batch", "jobs", ("get", "list", "watch", "create", "patch"), "jobs; one that is late is ended"),
    Right(
        _USERS,
        "apps",
        "deployments",
        ("list", "watch", "create", "patch", "delete"),
        "exposed services: begun, scaled, restarted, removed",
    ),
    Right(
        _USERS,
        "autoscaling",
        "horizontalpodautoscalers",
        ("create", "patch", "delete"),
        "exposed services scale between their bounds",
        False,
    ),
    Right(
        _USERS,
        "networking.k8s.io",
        "networkpolicies",
        ("get", "list", "watch", "create", "patch", "update", "delete"),
        "users' pods are kept apart, and from what they must not call",
    ),
    Right(
        _USERS,
        "networking.k8s.io",
        "ingresses",
        ("create", "patch", "delete"),
        "a way to exposed services that does not pass the manager, with `kubernetes.route`",
        False,
    ),
    Right(
        _USERS,
        "gateway.networking.k8s.io",
        "httproutes",
        ("create", "patch", "delete"),
        "the same with the Gateway API",
        False,
    ),
    Right(
        _OWN,
        "",
        "secrets",
        ("get", "list", "watch", "create", "patch", "delete"),
        "what no pod of a user may mount: tokens and keys of services",
    ),
    Right(
        _OWN,
        "coordination.k8s.io",
        "leases",
        ("get", "create", "update"),
        "one of several managers works at a time",
    ),
)


def needed(namespaces: Sequence[str] = (), binding: str = "") -> tuple[Right, ...]:
    """What a manager of these settings (`kubernetes.namespaces`, `kubernetes.binding`) asks for."""
    if namespaces:
        chosen = [replace(one, needed=one.needed and one.scope is not Scope.LOOK) for one in RIGHTS]
        return tuple(one for one in chosen if one.scope in (Scope.LOOK, Scope.USERS, Scope.OWN))
    if not binding:
        return tuple(one for one in RIGHTS if one.scope is not Scope.BIND)
    return tuple(replace(one, only=binding) if one.only == BOUND_ROLE else one for one in RIGHTS)
