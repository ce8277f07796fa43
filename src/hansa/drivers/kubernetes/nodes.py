"""What have the nodes of this Kubernetes, and how busy are they? Looked at every few seconds, read from memory.

Promises are what Kubernetes' scheduler counts: the requests of all pods that have not ended. Use is what
metrics.k8s.io tells, and where nothing tells it, the promises. What jobs may use together is what the nodes have
without what other pods were promised, those of our own exposed services and warm workers among them.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import structlog
from lightkube.generic_resource import create_global_resource
from lightkube.resources.core_v1 import Node, Pod

from hansa import resources
from hansa.drivers.kubernetes import labels
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.errors import ApiRefused, ApiUnreachable
from hansa.kernel import quantities
from hansa.kernel.errors import NotFound
from hansa.resources import Needs
from hansa.settings import JobSettings

_log = structlog.get_logger("hansa.kubernetes")
_EVERY = 5.0  # seconds
_LIVE_PODS = {"status.phase": "Pending"}, {"status.phase": "Running"}
_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_GPU = "nvidia.com/gpu"
_METRICS = create_global_resource("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes")
_MANY = 2**62


class KubernetesNodes:
    """The cluster as a whole. `refresh` looks, everything else tells what was seen last."""

    def __init__(
        self, api: Connection, cluster: str, jobs: JobSettings, *, listed: Callable[[], Sequence[str]] = lambda: ("*",)
    ) -> None:
        """`listed` tells in which namespaces pods may be looked at: those of others are not counted then."""
        self.name = "kubernetes"
        self._api = api
        self._marks = labels.of_cluster(cluster)
        self._jobs = jobs
        self._listed = listed
        self.blind = False
        """There is no right to look at nodes: what jobs may use is what the settings say."""
        self._nodes: tuple[resources.Node, ...] = ()
        self._others = Needs(0, 0)

    def adopt(self, jobs: JobSettings) -> None:
        """Other shares for jobs."""
        self._jobs = jobs

    def whole(self) -> Needs:
        if self.blind:
            return Needs(_MANY, _MANY)
        ready = [node for node in self._nodes if node.ready]
        return Needs(sum(node.cpu for node in ready), sum(node.memory for node in ready))

    def largest(self) -> Needs:
        """More than this no single pod can ever get; its processors and memory may be those of two nodes. A node that
        is away now, or full of others' pods, counts: a job waits for it, and does not fail."""
        nodes = () if self.blind else self._nodes
        cpu = max((node.cpu for node in nodes), default=_MANY)
        memory = max((node.memory for node in nodes), default=_MANY)
        return self._share(Needs(cpu, memory), self._jobs)

    def capacity(self) -> Needs:
        return self.capacity_with(self._jobs)

    def capacity_with(self, jobs: JobSettings) -> Needs:
        whole = self.whole()
        free = Needs(max(0, whole.cpu - self._others.cpu), max(0, whole.memory - self._others.memory))
        return self._share(free, jobs)

    def _share(self, there: Needs, jobs: JobSettings) -> Needs:
        """What of it is for jobs."""
        return Needs(
            min(there.cpu, quantities.millicores(jobs.cpu)) if jobs.cpu else there.cpu,
            min(there.memory, quantities.size(jobs.memory)) if jobs.memory else there.memory,
        )

    def look(self) -> tuple[resources.Node, ...]:
        return self._nodes

    async def refresh(self) -> None:
        """Raises `ApiUnreachable`."""
        if self.blind:
            return
        try:
            nodes = await self._api.list(Node)
        except ApiRefused:
            if "*" in self._listed():
                raise
            self.blind = True
            return
        pods = [
            pod
            for phase in _LIVE_PODS
            for namespace in self._listed()
            for pod in await self._api.list(Pod, namespace, fields=phase)
        ]
        used = await self._used()
        requested: defaultdict[str, Needs] = defaultdict(lambda: Needs(0, 0))
        others = Needs(0, 0)
        for pod in pods:
            asked = requests_of(pod)
            if pod.spec.nodeName:
                requested[pod.spec.nodeName] = _sum(requested[pod.spec.nodeName], asked)
            if pod.spec.nodeName and not self._is_job_of_ours(pod):
                others = _sum(others, asked)
        self._nodes = tuple(_seen(node, requested[node.metadata.name], used) for node in counted(nodes))
        self._others = others

    async def keep(self, changed: Callable[[], None]) -> None:
        """For ever; `changed` is called after every look."""
        while True:
            await asyncio.sleep(_EVERY)
            try:
                await self.refresh()
            except ApiUnreachable as error:
                _log.info("the nodes cannot be looked at", reason=error.message)
                continue
            changed()

    async def _used(self) -> dict[str, Needs] | None:
        """None where nothing measures it."""
        try:
            found = await self._api.list(_METRICS)
        except (NotFound, ApiRefused, ApiUnreachable):  # an aggregated API that is down answers 503
            return None
        return {one.metadata.name: _needs(one["usage"]) for one in found}

    def _is_job_of_ours(self, pod: Any) -> bool:
        marked = pod.metadata.labels or {}
        return labels.JOB in marked and all(marked.get(key) == value for key, value in self._marks.items())


def counted(nodes: Iterable[Any]) -> list[Any]:
    """Workers if there are any; a small cluster's only node does all."""
    every = list(nodes)
    workers = [node for node in every if not any(role in (node.metadata.labels or {}) for role in _CONTROL_PLANE)]
    return workers or every


def requests_of(pod: Any) -> Needs:
    """As the scheduler counts them: containers and sidecars together, or the largest of the others that run before."""
    sidecars = first = Needs(0, 0)
    for container in pod.spec.initContainers or ():
        asked = _needs(container.resources.requests if container.resources else None)
        if container.restartPolicy == "Always":
            sidecars = _sum(sidecars, asked)
            first = _larger(first, sidecars)
        else:
            first = _larger(first, _sum(sidecars, asked))
    at_once = sidecars
    for container in pod.spec.containers:
        at_once = _sum(at_once, _needs(container.resources.requests if container.resources else None))
    overhead = _needs(pod.spec.overhead)
    return _sum(_larger(first, at_once), overhead)


def _seen(node: Any, requested: Needs, used: Mapping[str, Needs] | None) -> resources.Node:
    there = _needs(node.status.allocatable)
    busy = requested if used is None else used.get(node.metadata.name, Needs(0, 0))
    ready = any(one.type == "Ready" and one.status == "True" for one in node.status.conditions or ())
    return resources.Node(
        name=node.metadata.name,
        cpu=there.cpu,
        memory=there.memory,
        cpu_used=min(busy.cpu, there.cpu),
        memory_used=min(busy.memory, there.memory),
        cpu_requested=requested.cpu,
        memory_requested=requested.memory,
        ready=ready and not node.spec.unschedulable,
        gpus=int((node.status.allocatable or {}).get(_GPU, 0)),
    )


def _needs(amounts: Mapping[str, str] | None) -> Needs:
    given = amounts or {}
    cpu, memory = given.get("cpu"), given.get("memory")
    return Needs(quantities.millicores(cpu) if cpu else 0, quantities.size(memory) if memory else 0)


def _sum(one: Needs, other: Needs) -> Needs:
    return Needs(one.cpu + other.cpu, one.memory + other.memory)


def _larger(one: Needs, other: Needs) -> Needs:
    return Needs(max(one.cpu, other.cpu), max(one.memory, other.memory))
