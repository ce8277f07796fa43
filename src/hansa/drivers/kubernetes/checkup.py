"""Can a manager work with this Kubernetes, and what will not work? Asks the API server, changes nothing, and gives
findings as plain data; `hansa doctor` prints them.

Everything is asked by its path: what is looked at here, and nowhere else in the driver, needs no right. Where the
account may not look, that is a finding.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hansa.drivers.kubernetes import labels, rights
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.errors import ApiRefused, ApiUnreachable
from hansa.drivers.kubernetes.rights import Right, Scope
from hansa.kernel import quantities
from hansa.kernel.errors import HansaError, NotFound

_OLDEST, _TRIED = (1, 29), (1, 34)  # with native sidecars; what our own tests run on
_VERSION = re.compile(r"v?(\d+)\.(\d+)")
_AT_ONCE = 8
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_ENFORCE = "pod-security.kubernetes.io/enforce"
_GPU = "nvidia.com/gpu"
_GRANT = "the Helm chart gives it; docs/reference/kubernetes-rights.md lists all"
_BESIDE = {  # what we do not need, and people ask for
    "gateway api": ("gateway.networking.k8s.io", "the manager itself carries calls to exposed services"),
    "knative": ("serving.knative.dev", "synchronous calls are answered by warm pods of our own"),
    "kueue": ("kueue.x-k8s.io", "the manager queues jobs, and holds users to their quotas"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """`ok` is None where something optional is missing, or could not be looked at."""

    name: str
    ok: bool | None
    detail: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the settings ask for."""

    kubeconfig: Path | None
    context: str = ""
    image: str = ""
    own_namespace: str = "hansa"
    namespaces: tuple[str, ...] = ()
    cluster: str = ""
    binding: str = ""
    policies: bool = True
    pull_secrets: tuple[str, ...] = ()
    storage_class: str = ""
    priority_class: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)


async def findings(wanted: Wanted) -> list[Finding]:
    """In the order in which they matter. The first that fails for good is the last: nothing else can be known then."""
    try:
        api = Connection.open(wanted.kubeconfig, wanted.context)
    except ApiRefused as error:
        hint = error.hint if wanted.kubeconfig else "outside the cluster a file is needed: --kubeconfig"
        return [Finding("kubeconfig", False, error.message, hint)]
    try:
        return await _looked(api, wanted)
    finally:
        await api.close()


async def _looked(api: Connection, wanted: Wanted) -> list[Finding]:
    where = f"{wanted.kubeconfig or 'the account of this pod'}, {api.client.config.cluster.server}"
    found = [Finding("kubeconfig", True, where)]
    try:
        version = await api.version()
        found += [server(version), await _account(api)]
        groups = {group["name"] for group in (await api.ask("/apis")).get("groups", ())}
    except (ApiRefused, ApiUnreachable) as error:
        unknown = error.facts.get("status") == 401
        hint = "the server does not know these credentials: have they expired?" if unknown else error.hint
        return [*found, Finding("server", False, error.message, hint)]
    found += await _rights(api, wanted, groups)
    checks = {
        "nodes": _nodes(api, wanted),
        "gpu": _gpu(api),
        "runtime classes": _runtime_classes(api),
        "volumes": _volumes(api, wanted.storage_class),
        "namespaces": _namespaces(api, wanted),
        "ingress": _ingress(api),
    }
    if wanted.pull_secrets:
        checks["pull secrets"] = _pull_secrets(api, wanted)
    if wanted.priority_class:
        checks["priority class"] = _priority_class(api, wanted.priority_class)
    asked = await asyncio.gather(*(_safely(name, check) for name, check in checks.items()))
    return [*found, *asked, _metrics(groups), *beside(groups), _network(wanted), *_settings(wanted)]


async def _safely(name: str, check: Any) -> Finding:
    """What may not be looked at is told as that."""
    try:
        result: Finding = await check
        return result
    except HansaError as error:
        return Finding(name, None, f"cannot be looked at: {error.message}", error.hint)


# One question each.


def server(version: str) -> Finding:
    match = _VERSION.match(version)
    number = (int(match[1]), int(match[2])) if match else (0, 0)
    if number < _OLDEST:
        needed = ".".join(map(str, _OLDEST))
        hint = f"Kubernetes {needed} or newer is needed: jobs' outputs are carried by native sidecars"
        return Finding("server", False, f"{version or 'unknown'}, without native sidecars", hint)
    newer = f"; newer than what we have tried ({'.'.join(map(str, _TRIED))})" if number > _TRIED else ""
    return Finding("server", True, f"{version}, with native sidecars{newer}")


async def _account(api: Connection) -> Finding:
    try:
        return Finding("account", True, await api.whoami())
    except NotFound:
        return Finding("account", None, "the server does not say who we are")


async def _rights(api: Connection, wanted: Wanted, groups: set[str]) -> list[Finding]:
    every = rights.needed(wanted.namespaces, wanted.binding)
    asked = [right for right in every if "." not in right.group or right.group in groups]
    turn = asyncio.Semaphore(_AT_ONCE)
    try:
        places = await _places(api, wanted)
        missing = await asyncio.gather(*(_missing(api, right, wanted, places, turn) for right in asked))
    except (ApiRefused, ApiUnreachable) as error:
        return [Finding("rights", False, error.message, error.hint)]
    lacking = [_lack(right, some) for right, some in zip(asked, missing, strict=True) if some]
    if any(one.ok is False for one in lacking):
        return lacking
    return [Finding("rights", True, f"all that a manager needs, for {len(asked)} kinds of objects"), *lacking]


async def _places(api: Connection, wanted: Wanted) -> Sequence[str]:
    """Where users' pods run; "" is everywhere. Rights that are bound to a namespace come with it: of none, none is
    missing."""
    if not wanted.binding:
        return wanted.namespaces or ("",)
    selector = quote(f"{labels.CLUSTER}={labels.value(wanted.cluster)}")
    try:
        found = (await api.ask(f"/api/v1/namespaces?labelSelector={selector}"))["items"]
    except ApiRefused:
        return ()  # that right is missing, which is a finding of its own
    names = [str(one["metadata"]["name"]) for one in found if not one["metadata"].get("deletionTimestamp")]
    return [name for name in names if name != wanted.own_namespace]


async def _missing(
    api: Connection, right: Right, wanted: Wanted, users: Sequence[str], turn: asyncio.Semaphore
) -> dict[str, list[str]]:
    """What the account may not do, by namespace; "" is the whole cluster."""
    places = users
    if right.scope in rights.WIDE:
        places = ("",)
    if right.scope is Scope.OWN:
        places = (wanted.own_namespace,)
    lacking: dict[str, list[str]] = {}
    for place in places:
        for attributes in right.reviews(place):
            async with turn:
                if not await api.may(attributes):
                    lacking.setdefault(place, []).append(attributes["verb"])
    return lacking


def _lack(right: Right, missing: Mapping[str, Sequence[str]]) -> Finding:
    kind = f"{right.resource}.{right.group}" if right.group else right.resource
    own = f" in {''.join(missing)}" if right.scope is Scope.OWN else ""
    told = [", ".join(verbs) + (f" in {place}" if place else "") for place, verbs in missing.items()]
    detail = f"the account may not {'; '.join(told)}: {right.why}"
    return Finding(f"right {kind}{own}", False if right.needed else None, detail, _GRANT)


async def _nodes(api: Connection, wanted: Wanted) -> Finding:
    every = (await api.ask("/api/v1/nodes"))["items"]
    ready = [node for node in every if _is_ready(node)]
    ours = [node for node in ready if wanted.node_selector.items() <= node["metadata"].get("labels", {}).items()]
    amounts = [node["status"].get("allocatable", {}) for node in ours]
    cpu = sum(quantities.millicores(one.get("cpu", "0")) for one in amounts)
    memory = sum(quantities.size(one.get("memory", "0")) for one in amounts)
    detail = (
        f"{len(ready)} of {len(every)} ready, {len(ours)} for us: {cpu}m cpu, {quantities.show_size(memory)} memory"
    )
    if ours:
        return Finding("nodes", True, detail)
    hint = "change kubernetes.node_selector" if ready else "kubectl get nodes says what is wrong with them"
    return Finding("nodes", False, detail, f"no pod of ours can run: {hint}")


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = node["status"].get("conditions") or ()
    good = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return good and not node["spec"].get("unschedulable")


async def _gpu(api: Connection) -> Finding:
    every = (await api.ask("/api/v1/nodes"))["items"]
    count = sum(int(node["status"].get("allocatable", {}).get(_GPU, 0)) for node in every)
    if count:
        return Finding("gpu", True, f"{count} of {_GPU}")
    hint = f"services with enable_gpu would wait for ever; a device plugin has to offer {_GPU}"
    return Finding("gpu", None, "no node has any", hint)


async def _runtime_classes(api: Connection) -> Finding:
    found = _names(await api.ask("/apis/node.k8s.io/v1/runtimeclasses"))
    return Finding("runtime classes", True, f"{found or 'none'}; pods run in the nodes' own")


async def _volumes(api: Connection, named: str) -> Finding:
    every = (await api.ask("/apis/storage.k8s.io/v1/storageclasses"))["items"]
    by_name = {one["metadata"]["name"]: one for one in every}
    marked = [
        name
        for name, one in by_name.items()
        if (one["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
    ]
    chosen = named or next(iter(marked), "")
    if chosen in by_name:
        one = by_name[chosen]
        kept = "are kept" if one.get("reclaimPolicy") == "Retain" else "go"
        detail = f"storage class {chosen} ({one['provisioner']}); contents of removed volumes {kept}"
        return Finding("volumes", True, detail)
    there = ", ".join(by_name) or "none"
    if named:
        hint = f"volumes would wait for ever; there are: {there}"
        return Finding("volumes", False, f"there is no storage class {named}", hint)
    hint = f"users' volumes would wait for ever: set kubernetes.storage_class, or mark a default; there are: {there}"
    return Finding("volumes", None, "no storage class is the default, and the settings name none", hint)


async def _namespaces(api: Connection, wanted: Wanted) -> Finding:
    """With namespaces of users' own nothing has to be there: the manager makes them, closed."""
    missing, levels = [], {}
    for name in dict.fromkeys((*wanted.namespaces, wanted.own_namespace)):
        try:
            about = (await api.ask(f"/api/v1/namespaces/{quote(name)}"))["metadata"]
        except NotFound:
            missing.append(name)
            continue
        levels[name] = (about.get("labels") or {}).get(_ENFORCE, "")
    needed = [name for name in missing if name in wanted.namespaces]
    if needed:
        hint = "; ".join(f"kubectl create namespace {name}" for name in needed)
        return Finding("namespaces", False, f"not there: {', '.join(needed)}", hint)
    if missing:
        hint = f"kubectl create namespace {wanted.own_namespace}, or let the manager make it"
        return Finding("namespaces", None, f"the manager's own, {wanted.own_namespace}, is not there", hint)
    open_ones = [name for name in wanted.namespaces if levels[name] != "restricted"]
    if open_ones:
        hint = f"our pods need no more: kubectl label namespace {open_ones[0]} {_ENFORCE}=restricted"
        return Finding("namespaces", None, f"pod security is not restricted in {', '.join(open_ones)}", hint)
    made = "restricted by pod security" if wanted.namespaces else "users' are made restricted by pod security"
    return Finding("namespaces", True, f"{', '.join(levels)}; {made}")


async def _pull_secrets(api: Connection, wanted: Wanted) -> Finding:
    """With given namespaces nobody copies them there."""
    missing = []
    for namespace in wanted.namespaces or (wanted.own_namespace,):
        for name in wanted.pull_secrets:
            try:
                await api.ask(f"/api/v1/namespaces/{quote(namespace)}/secrets/{quote(name)}")
            except NotFound:
                missing.append(f"{namespace}/{name}")
    if missing:
        namespace, _, name = missing[0].partition("/")
        hint = f"kubectl -n {namespace} create secret docker-registry {name} --docker-server=…"
        return Finding("pull secrets", False, f"not there: {', '.join(missing)}", hint)
    return Finding("pull secrets", True, ", ".join(wanted.pull_secrets))


async def _ingress(api: Connection) -> Finding:
    if found := _names(await api.ask("/apis/networking.k8s.io/v1/ingressclasses")):
        return Finding("ingress", True, f"class {found}")
    hint = "people reach the manager by a LoadBalancer, a NodePort or kubectl port-forward; or install a controller"
    return Finding("ingress", None, "no ingress class", hint)


async def _priority_class(api: Connection, name: str) -> Finding:
    try:
        found = await api.ask(f"/apis/scheduling.k8s.io/v1/priorityclasses/{quote(name)}")
    except NotFound:
        hint = "no pod of ours could be made: change kubernetes.priority_class"
        return Finding("priority class", False, f"there is no {name}", hint)
    return Finding("priority class", True, f"{name}, {found['value']}")


def _metrics(groups: set[str]) -> Finding:
    if "metrics.k8s.io" in groups:
        return Finding("metrics", True, "how busy nodes are is measured")
    hint = "the status counts what pods requested; metrics-server measures what they use"
    return Finding("metrics", None, "metrics.k8s.io is not served", hint)


def beside(groups: set[str]) -> list[Finding]:
    return [
        Finding(name, True, f"{'there, and' if group in groups else 'not there;'} not needed: {why}")
        for name, (group, why) in _BESIDE.items()
    ]


def _network(wanted: Wanted) -> Finding:
    """Whether policies are enforced is known to nobody but the network plugin."""
    if not wanted.policies:
        hint = "kubernetes.network.policies is false: see that policies of your own do the same"
        return Finding("network policies", None, "the manager keeps no walls around users' pods", hint)
    detail = "the manager makes them; the cluster's network plugin has to enforce them, which cannot be asked"
    return Finding("network policies", True, detail)


def _settings(wanted: Wanted) -> Iterable[Finding]:
    if not wanted.image:
        hint = "kubernetes.image: Hansa's own image as the nodes pull it; deploy/Containerfile makes it"
        yield Finding("image", None, "the settings name none", hint)
    if wanted.kubeconfig is not None:
        hint = "run it in the cluster, or give it a route: calls go straight to pods"
        yield Finding("network", None, "a manager outside the cluster has to reach the network of pods", hint)


def _names(listing: Mapping[str, Any]) -> str:
    return ", ".join(one["metadata"]["name"] for one in listing["items"])
