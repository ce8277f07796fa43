"""What does Kubernetes show of ours now? Jobs, Deployments and pods, kept in step, and who waits for news."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from lightkube import AsyncClient
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Pod

from hansa.drivers.kubernetes import labels
from hansa.drivers.kubernetes.following import Follow, Key


class Board:
    """Jobs and services by their names, which are unique in the cluster."""

    def __init__(
        self, client: AsyncClient, cluster: str, namespaces: Sequence[str] = (), *, growing: bool = False
    ) -> None:
        """`namespaces` and `growing` are as in `Follow`."""
        marks = labels.of_cluster(cluster)
        self._news: dict[str, asyncio.Event] = {}
        self._pods_of: dict[str, set[Key]] = {}
        self._instances: dict[str, set[Key]] = {}
        self._workers: dict[str, set[Key]] = {}
        self.on_exposed: Callable[[str], None] = lambda _: None  # hears of every change of an exposed service
        where: dict[str, Any] = {"namespaces": namespaces, "growing": growing}
        self._jobs = Follow(client, Job, marks, self._job_changed, **where)
        self._pods = Follow(client, Pod, marks, self._pod_changed, **where)
        self._deployments = Follow(client, Deployment, marks, self._deployment_changed, **where)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(follow.run(), name=f"follow {name}") for name, follow in self._all()]

    def include(self, namespace: str) -> None:
        """One more namespace in which something of ours is."""
        for _, follow in self._all():
            follow.include(namespace)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def synced(self) -> None:
        """Everything that was there is known."""
        await asyncio.gather(*(follow.synced.wait() for _, follow in self._all()))

    def _all(self) -> tuple[tuple[str, Follow], ...]:
        return ("jobs", self._jobs), ("pods", self._pods), ("deployments", self._deployments)

    def deployment(self, namespace: str, name: str) -> Any | None:
        return self._deployments.get((namespace, name))

    def pods_of(self, service: str) -> list[Any]:
        """The instances of an exposed service, oldest first, without those that are being taken away."""
        found = [pod for key in self._instances.get(service, ()) if (pod := self._pods.get(key)) is not None]
        staying = [pod for pod in found if pod.metadata.deletionTimestamp is None]
        return sorted(staying, key=lambda pod: (pod.metadata.creationTimestamp, pod.metadata.name))

    def worker(self, name: str) -> Any | None:
        """A pod that answers calls."""
        found = [pod for key in self._workers.get(name, ()) if (pod := self._pods.get(key)) is not None]
        return found[0] if found else None

    def workers(self) -> list[tuple[str, str]]:
        """All pods that answer calls, by their own names, with their namespaces."""
        found = [(name, key[0]) for name, keys in self._workers.items() for key in keys]
        return sorted(found)

    def tenants(self) -> set[tuple[str, str]]:
        """Where pods are, and whose they are by their label ("": an earlier version made it, and did not say)."""
        found = [pod.metadata for pod in self._pods.all()]
        return {(one.namespace, (one.labels or {}).get(labels.OWNER, "")) for one in found}

    def deployed_in(self, service: str) -> set[str]:
        """Namespaces with a Deployment of an exposed service."""
        every = self._deployments.all()
        return {one.metadata.namespace for one in every if (one.metadata.labels or {}).get(labels.EXPOSED) == service}

    def job(self, namespace: str, name: str) -> Any | None:
        return self._jobs.get((namespace, name))

    def jobs(self) -> list[Any]:
        return self._jobs.all()

    def pod(self, name: str) -> Any | None:
        """The newest pod of a job; an earlier one was taken away by Kubernetes."""
        found = [pod for key in self._pods_of.get(name, ()) if (pod := self._pods.get(key)) is not None]
        return max(found, key=lambda pod: pod.metadata.creationTimestamp, default=None)

    @asynccontextmanager
    async def watching(self, name: str) -> AsyncIterator[asyncio.Event]:
        """The event is set whenever something about the job changed; whoever looks clears it first."""
        event = self._news.setdefault(name, asyncio.Event())
        try:
            yield event
        finally:
            self._news.pop(name, None)

    def _job_changed(self, key: Key) -> None:
        self._tell(key[1])

    def _deployment_changed(self, key: Key) -> None:
        seen = self._deployments.get(key)
        if seen is not None:
            self.on_exposed((seen.metadata.labels or {}).get(labels.EXPOSED, ""))

    def _pod_changed(self, key: Key) -> None:
        pod = self._pods.get(key)
        for label, shelf, tell in (
            (labels.JOB, self._pods_of, self._tell),
            (labels.WORKER, self._workers, self._tell),
            (labels.EXPOSED, self._instances, self.on_exposed),
        ):
            if pod is None:
                names = [name for name, pods in shelf.items() if key in pods]
                for name in names:
                    shelf[name].discard(key)
                    if not shelf[name]:
                        del shelf[name]
            else:
                names = [name] if (name := (pod.metadata.labels or {}).get(label, "")) else []
                for name in names:
                    shelf.setdefault(name, set()).add(key)
            for name in names:
                tell(name)

    def _tell(self, name: str) -> None:
        event = self._news.get(name)
        if event is not None:
            event.set()
