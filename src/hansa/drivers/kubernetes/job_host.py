"""How does one job run in Kubernetes? As a Secret and a Job of its name, followed to their end; once.

The `JobHost` port. All of a run's state is in Kubernetes: called again after a crash of ours it finds the Job and goes
on following it. Cancelling it only ends the following: a manager that stops leaves its jobs alone, and `discard` is
what ends one.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import structlog
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Pod, Secret

from hansa import services
from hansa.drivers.kubernetes import manifests, verdict
from hansa.drivers.kubernetes.board import Board
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.errors import ApiUnreachable
from hansa.drivers.kubernetes.job_logs import KubernetesLogs
from hansa.drivers.kubernetes.namespaces import Namespaces
from hansa.drivers.kubernetes.pods import Shape
from hansa.drivers.kubernetes.stager import paper
from hansa.kernel import names
from hansa.kernel.errors import NotFound
from hansa.storage import ObjectStore

T = TypeVar("T")
_log = structlog.get_logger("hansa.kubernetes")
_LOOK_EVERY = 15.0  # seconds after which we look even if nobody told us anything
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_PULL_PATIENCE = 120.0  # seconds an image may be missing
_GRACE = 2  # seconds for a script that is ended from outside
_LINK_SECONDS = 604_800  # as long as a store signs for

StoreOf = Callable[[services.RunOrder], Awaitable[Mapping[str, str]]]


class KubernetesJobHost:
    """Jobs as `batch/v1` Jobs. `store_of` gives the address and keys with which a pod reaches the cluster's store."""

    def __init__(
        self,
        connection: Connection,
        board: Board,
        logs: KubernetesLogs,
        namespaces: Namespaces,
        shape: Shape,
        *,
        default_namespace: str,
        store: ObjectStore,
        store_of: StoreOf,
        bucket: str,
        pull_patience: float = _PULL_PATIENCE,
    ) -> None:
        self._api = connection
        self._board = board
        self._logs = logs
        self._shape = shape
        self._default_namespace = default_namespace
        self._store = store
        self._store_of = store_of
        self._bucket = bucket
        self._pull_patience = pull_patience
        self._namespaces = namespaces
        self._where: dict[str, str] = {}  # the namespace of every job we follow

    async def run(self, order: services.RunOrder) -> services.Outcome:
        names.job(order.name)
        namespace = order.service.namespace or self._default_namespace
        self._where[order.name] = namespace
        async with self._board.watching(order.name) as news:
            await self._board.synced()
            await self._patiently(lambda: self._ensure(order, namespace))
            ended = await self._follow(order, namespace, news)
            await self._patiently(lambda: self._keep_log(order, ended))
        return ended.outcome

    async def discard(self, name: str) -> None:
        names.job(name)
        namespace = self._where.pop(name, None) or self._seen_in(name)
        if namespace is None:
            return
        pod = self._board.pod(name)
        if pod is not None:  # by itself it would have all the time its outputs may take
            gone = pod.metadata.name
            await self._patiently(lambda: self._api.delete(Pod, gone, namespace, grace=_GRACE))
        await self._patiently(lambda: self._api.delete(Secret, name, namespace))
        with suppress(NotFound):  # the bucket is made with the first that needs it
            await self._store.delete(self._bucket, _event(name))
            await self._close_gate(name, pod)

    async def _close_gate(self, name: str, pod: Any | None) -> None:
        """One that still waits for a word gets it: Kubernetes does not end it before."""
        if pod is not None and verdict.may_wait_at_gate(pod):
            await self._store.put(self._bucket, _gate(name), paper.NO)
        else:
            await self._store.delete(self._bucket, _gate(name))

    async def _ensure(self, order: services.RunOrder, namespace: str) -> None:
        """The Secret and the Job are there; who was here before may have made one or both."""
        if self._board.job(namespace, order.name) is not None:
            return
        await self._namespaces.ensure(namespace)
        whole = await self._with_keys(order)
        links = await self._links(order)
        made = await self._api.create(manifests.secret(whole, namespace, self._shape, links))
        if made is None:
            made = await self._api.get(Secret, order.name, namespace)
        if made is None:
            raise ApiUnreachable(f"the Secret of job {order.name} was deleted as it was made")
        await self._api.create(manifests.job(whole, namespace, self._shape, made))

    async def _follow(self, order: services.RunOrder, namespace: str, news: asyncio.Event) -> verdict.Ended:
        began, told_end, decided = time.monotonic(), False, False
        missing_since: float | None = None
        while True:
            news.clear()
            job = self._board.job(namespace, order.name)
            if job is None:
                missing_since = missing_since or time.monotonic()
                if time.monotonic() - missing_since > _LOOK_EVERY and await self._is_gone(order.name, namespace):
                    return verdict.Ended(services.Outcome(False, None, "its Job was deleted in Kubernetes"))
                await _heard(news, 1.0)
                continue
            missing_since, pause = None, _LOOK_EVERY
            match verdict.progress(order, job, self._board.pod(order.name)):
                case verdict.Ended() as ended:
                    return ended
                case verdict.Waits(reason, hopeless):
                    if hopeless or ("image" in reason and time.monotonic() - began > self._pull_patience):
                        return verdict.Ended(services.Outcome(False, None, reason))
                case verdict.Runs(since) if since is not None:
                    left = since + order.seconds - time.time()
                    if left <= 0 and not told_end:
                        await self._patiently(lambda: self._end(order.name, namespace))
                        told_end = True
                    pause = min(_LOOK_EVERY, max(left, 0.05))
                case verdict.Asks():
                    if not decided:
                        await self._decide(order)
                        decided = True
            await _heard(news, pause)

    async def _end(self, name: str, namespace: str) -> None:
        """Its time is over, on record: whoever follows it later sees the same. Kubernetes takes its pod away."""
        await self._logs.keep_so_far(name)
        await self._api.merge(Job, name, namespace, {"spec": {"activeDeadlineSeconds": 1}})

    async def _decide(self, order: services.RunOrder) -> None:
        """Once: a word that was given before is not taken back."""
        gate = _gate(order.name)
        with suppress(NotFound):
            await self._store.head(self._bucket, gate)
            return
        allowed = order.may_publish is None or await order.may_publish()
        await self._store.put(self._bucket, gate, paper.YES if allowed else paper.NO)

    async def _is_gone(self, name: str, namespace: str) -> bool:
        return await self._patiently(lambda: self._api.get(Job, name, namespace)) is None

    async def _keep_log(self, order: services.RunOrder, ended: verdict.Ended) -> None:
        outcome = ended.outcome
        said = (
            ("INFO", "the script ended well") if outcome.succeeded else ("ERROR", f"the job failed: {outcome.reason}")
        )
        await self._logs.keep_last(order.name, order.service.log_level, *said)

    async def _with_keys(self, order: services.RunOrder) -> services.RunOrder:
        if not (manifests.stages_in(order) or manifests.stages_out(order)):
            return order
        own = "minio.default"
        if order.providers.get(own, {}).get("access_key", "") not in ("", "hidden"):
            return order
        return replace(order, providers={**order.providers, own: dict(await self._store_of(order))})

    async def _links(self, order: services.RunOrder) -> paper.Links:
        large, gated = len(order.event) > manifests.LARGEST_EVENT, order.may_publish is not None
        if not large and not gated:
            return paper.Links()
        await self._store.create_bucket(self._bucket)
        if large:
            await self._store.put(self._bucket, _event(order.name), order.event)
        return paper.Links(
            event=await self._link(_event(order.name)) if large else "",
            gate=await self._link(_gate(order.name)) if gated else "",
        )

    async def _link(self, key: str) -> str:
        return await self._store.presign(self._bucket, key, "download", _LINK_SECONDS)

    def _seen_in(self, name: str) -> str | None:
        for job in self._board.jobs():
            if job.metadata.name == name:
                return str(job.metadata.namespace)
        return None

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Until the API server answers: a job is not lost because it is away."""
        pause = _FIRST_PAUSE
        while True:
            try:
                return await work()
            except ApiUnreachable as error:
                _log.info("waiting for the API server", reason=error.message)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)


def _event(name: str) -> str:
    return f"events/{name}"


def _gate(name: str) -> str:
    return f"gates/{name}"


async def _heard(news: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await news.wait()
