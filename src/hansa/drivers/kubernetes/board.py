"""What does Kubernetes show of our jobs now? Jobs and pods of this cluster, kept in step, and who waits for news."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from lightkube import AsyncClient
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Pod

from hansa.drivers.kubernetes import labels
from hansa.drivers.kubernetes.following import Follow, Key


class Board:
    """By the job's name, which is unique in the cluster."""

    def __init__(self, client: AsyncClient, cluster: str) -> None:
        marks = labels.of_cluster(cluster)
        self._news: dict[str, asyncio.Event] = {}
        self._pods_of: dict[str, set[Key]] = {}
        self._jobs = Follow(client, Job, marks, self._job_changed)
        self._pods = Follow(client, Pod, marks, self._pod_changed)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(follow.run(), name=f"follow {name}")
            for name, follow in (("jobs", self._jobs), ("pods", self._pods))
        ]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def synced(self) -> None:
        """Everything that was there is known."""
        await asyncio.gather(self._jobs.synced.wait(), self._pods.synced.wait())

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

    def _pod_changed(self, key: Key) -> None:
        pod = self._pods.get(key)
        if pod is None:
            for name, pods in list(self._pods_of.items()):
                if key in pods:
                    pods.discard(key)
                    if not pods:
                        del self._pods_of[name]
                    self._tell(name)
            return
        name = (pod.metadata.labels or {}).get(labels.JOB, "")
        self._pods_of.setdefault(name, set()).add(key)
        self._tell(name)

    def _tell(self, name: str) -> None:
        event = self._news.get(name)
        if event is not None:
            event.set()
