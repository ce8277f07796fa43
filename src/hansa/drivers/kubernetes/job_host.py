"""How does one job run in Kubernetes? As a Secret and a Job of its name, followed to their end; once.

The `JobHost` port. All of a run's state is in Kubernetes: called again after a crash of ours it finds the Job and goes
on following it. Cancelling it only ends the following: a manager that stops leaves its jobs alone, and `discard` is
what ends one.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import structlog
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Event, Pod, Secret

from hansa import services
from hansa.drivers.kubernetes import job_manifest, job_verdict, labels
from hansa.drivers.kubernetes.engine import Engine
from hansa.drivers.kubernetes.errors import ApiRefused, ApiUnreachable
from hansa.drivers.kubernetes.job_logs import KubernetesLogs
from hansa.drivers.kubernetes.stager import paper
from hansa.drivers.runs import plans
from hansa.kernel import names
from hansa.kernel.errors import HansaError, NotFound, Temporary
from hansa.storage import ObjectStore

T = TypeVar("T")
_log = structlog.get_logger("hansa.kubernetes")
_LOOK_EVERY = 15.0  # seconds after which we look even if nobody told us anything
_POD_WITHIN = 5.0  # seconds after which we ask why a Job has no pod
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_PULL_PATIENCE = 120.0  # seconds an image may be missing
_PENDING_PATIENCE = 30.0  # seconds a job that another cluster may run waits for a node
_STORE_PATIENCE = 300.0  # seconds for which a store that does not answer is asked again, as long as stagers do
_GRACE = 2  # seconds for a script that is ended from outside
_LINK_SECONDS = 604_800  # as long as a store signs for


class KubernetesJobHost:
    """Jobs as `batch/v1` Jobs."""

    def __init__(
        self,
        engine: Engine,
        logs: KubernetesLogs,
        *,
        store: ObjectStore,
        bucket: str,
        pull_patience: float = _PULL_PATIENCE,
        pending_patience: float = _PENDING_PATIENCE,
        store_patience: float = _STORE_PATIENCE,
    ) -> None:
        """`bucket` is the manager's own, in the cluster's store."""
        self._engine = engine
        self._api = engine.api
        self._board = engine.board
        self._logs = logs
        self._store = store
        self._bucket = bucket
        self._pull_patience = pull_patience
        self._pending_patience = pending_patience
        self._store_patience = store_patience
        self._where: dict[str, str] = {}  # the namespace of every job we follow

    async def run(self, order: services.RunOrder) -> services.Outcome:
        names.job(order.name)
        namespace = self._engine.namespace_of(order)
        self._where[order.name] = namespace
        async with self._board.watching(order.name) as news:
            await self._board.synced()
            await self._patiently(lambda: self._ensure(order, namespace))
            ended = await self._follow(order, namespace, news)
            await self._keep_log(order, ended)
        return ended.outcome

    async def present(self) -> list[str]:
        """Jobs of which an earlier life of ours left something, if only the beginning."""
        for name, namespaces in (await self._engine.left(labels.JOB)).items():
            self._where.setdefault(name, min(namespaces))
        return sorted({*self._where, *(job.metadata.name for job in self._board.jobs())})

    async def ended(self) -> frozenset[str]:
        return frozenset()  # their pods, which have their room, deliver by themselves

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
        await self._engine.end_keys(name)
        try:
            await self._store.delete(self._bucket, _event(name))
            await self._store.delete(self._bucket, _plan(name))
            await self._close_gate(name, pod)
        except NotFound:
            return  # the bucket is made with the first that needs it
        except Temporary as error:  # nothing runs any more, and whoever waits for that has waited enough
            _log.warning("something of a job stays in the store", job=name, reason=error.message)

    async def _close_gate(self, name: str, pod: Any | None) -> None:
        """One that still waits for a word gets it: Kubernetes does not end it before."""
        if pod is not None and job_verdict.may_wait_at_gate(pod):
            await self._store.put(self._bucket, _gate(name), paper.NO)
        else:
            await self._store.delete(self._bucket, _gate(name))

    async def _ensure(self, order: services.RunOrder, namespace: str) -> None:
        """The Secret and the Job are there; who was here before may have made one or both."""
        if self._board.job(namespace, order.name) is not None:
            return
        await self._engine.prepare(order)
        whole = await self._engine.with_keys(order)
        links = await self._links(order)
        made = await self._api.create(job_manifest.secret(whole, namespace, self._engine.shape, links))
        if made is None:
            made = await self._api.get(Secret, order.name, namespace)
        if made is None:
            raise ApiUnreachable(f"the Secret of job {order.name} was deleted as it was made")
        await self._api.create(job_manifest.job(whole, namespace, self._engine.shape, made))

    async def _follow(self, order: services.RunOrder, namespace: str, news: asyncio.Event) -> job_verdict.Ended:
        began, told_end, decided, told = time.monotonic(), False, False, ""
        missing_since: float | None = None
        unplaced_since: float | None = None
        while True:
            news.clear()
            job = self._board.job(namespace, order.name)
            if job is None:
                missing_since = missing_since or time.monotonic()
                if time.monotonic() - missing_since > _LOOK_EVERY and await self._is_gone(order.name, namespace):
                    return job_verdict.Ended(services.Outcome(False, None, "its Job was deleted in Kubernetes"))
                await _heard(news, 1.0)
                continue
            missing_since = None
            progress, pause = await self._progress(order, job, time.monotonic() - began)
            told = await _explained(order, progress, told)
            match progress:
                case job_verdict.Ended() as ended:
                    return ended
                case job_verdict.Waits(reason, _, unplaced=True) if order.movable:
                    unplaced_since = unplaced_since or time.monotonic()
                    left = unplaced_since + self._pending_patience - time.monotonic()
                    if left <= 0 and await self._is_unplaced(order.name, namespace):
                        await self.discard(order.name)
                        raise services.NoRoom(reason)
                    pause = min(_LOOK_EVERY, max(left, 0.05))
                case job_verdict.Waits(reason, hopeless, pulls=pulls):
                    unplaced_since = None
                    if hopeless or (pulls and time.monotonic() - began > self._pull_patience):
                        return job_verdict.Ended(services.Outcome(False, None, reason))
                case job_verdict.Runs(since) if since is not None:
                    left = since + order.seconds - time.time()
                    if left <= 0 and not told_end:
                        await self._patiently(lambda: self._end(order, namespace))
                        told_end = True
                    pause = min(_LOOK_EVERY, max(left, 0.05))
                case job_verdict.Asks():
                    if not decided:
                        await self._decide(order)
                        decided = True
            await _heard(news, pause)

    async def _progress(self, order: services.RunOrder, job: Any, age: float) -> tuple[job_verdict.Progress, float]:
        """And in how many seconds to look again, if nobody tells us anything before."""
        pod = self._board.pod(order.name)
        progress = job_verdict.progress(order, job, pod)
        if pod is not None or not isinstance(progress, job_verdict.Waits):
            return progress, _LOOK_EVERY
        if age < _POD_WITHIN:
            return progress, _POD_WITHIN - age
        return await self._without_pod(job) or progress, _POD_WITHIN

    async def _without_pod(self, job: Any) -> job_verdict.Waits | None:
        """Why it has none. Whoever may not read events knows less."""
        about = {"involvedObject.kind": "Job", "involvedObject.name": job.metadata.name}
        try:
            events = await self._api.list(Event, job.metadata.namespace, fields=about)
        except (ApiUnreachable, ApiRefused, NotFound):
            return None
        return job_verdict.without_pod(job, events)

    async def _is_unplaced(self, name: str, namespace: str) -> bool:
        """Asked anew: what we were told may be a moment old, and a job that has a node is about to run."""
        found = await self._patiently(lambda: self._api.list(Pod, namespace, {labels.JOB: name}))
        return all(pod.spec.nodeName is None for pod in found)

    async def _end(self, order: services.RunOrder, namespace: str) -> None:
        """Its time is over, on record: whoever follows it later sees the same. Kubernetes takes its pod away."""
        try:
            await self._logs.keep_so_far(order.name, owner=order.payer)
        except HansaError as error:  # nobody runs longer because a store is away
            _log.warning("a log was not kept before its pod goes", job=order.name, reason=error.message)
        await self._api.merge(Job, order.name, namespace, {"spec": {"activeDeadlineSeconds": 1}})

    async def _decide(self, order: services.RunOrder) -> None:
        """Once: a word that was given before is not taken back. Each step has a patience of its own: the origin may
        have taken long to answer before the store is asked to keep it."""
        gate = _gate(order.name)
        with suppress(NotFound):
            await self._patiently(lambda: self._store.head(self._bucket, gate))
            return
        allowed = order.may_publish is None or await self._patiently(order.may_publish)
        if allowed and order.newest is not None:
            plan = plans.plan(services.up_to_date(order), None).to_json()
            await self._patiently(lambda: self._store.put(self._bucket, _plan(order.name), plan))
        word = paper.YES if allowed else paper.NO
        await self._patiently(lambda: self._store.put(self._bucket, gate, word))

    async def _is_gone(self, name: str, namespace: str) -> bool:
        return await self._patiently(lambda: self._api.get(Job, name, namespace)) is None

    async def _keep_log(self, order: services.RunOrder, ended: job_verdict.Ended) -> None:
        """What became of a job does not depend on whether its log could be kept."""
        outcome = ended.outcome
        said = (
            ("INFO", "the script ended well") if outcome.succeeded else ("ERROR", f"the job failed: {outcome.reason}")
        )
        try:
            await self._patiently(
                lambda: self._logs.keep_last(order.name, order.service.log_level, *said, owner=order.payer)
            )
        except HansaError as error:
            _log.warning("the log of a job was not kept", job=order.name, reason=error.message)

    async def _links(self, order: services.RunOrder) -> paper.Links:
        sent = job_manifest.sent(order)
        large, gated = len(sent) > job_manifest.LARGEST_EVENT, order.may_publish is not None
        if not large and not gated:
            return paper.Links()
        await self._store.create_bucket(self._bucket)
        if large:
            await self._store.put(self._bucket, _event(order.name), sent)
        return paper.Links(
            input=await self._link(_event(order.name)) if large else "",
            gate=await self._link(_gate(order.name)) if gated else "",
            plan=await self._link(_plan(order.name)) if gated and order.newest is not None else "",
        )

    async def _link(self, key: str) -> str:
        return await self._store.presign(self._bucket, key, "download", _LINK_SECONDS)

    def _seen_in(self, name: str) -> str | None:
        for job in self._board.jobs():
            if job.metadata.name == name:
                return str(job.metadata.namespace)
        return None

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Until the API server answers, for as long as that takes: a job is not lost because it is away. Other parts,
        such as the store, are asked again for a while."""
        pause, end = _FIRST_PAUSE, math.inf
        while True:
            try:
                return await work()
            except ApiUnreachable as error:
                _log.info("waiting for the API server", reason=error.message)
            except Temporary as error:
                end = min(end, time.monotonic() + self._store_patience)
                if time.monotonic() + pause > end:
                    raise
                _log.info("waiting for the object store, or for the origin of the job", reason=error.message)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)


def _event(name: str) -> str:
    return f"events/{name}"


def _plan(name: str) -> str:
    return f"plans/{name}"


def _gate(name: str) -> str:
    return f"gates/{name}"


async def _explained(order: services.RunOrder, progress: job_verdict.Progress, told: str) -> str:
    """What was told of it last."""
    why = ""
    if isinstance(progress, job_verdict.Waits):
        why = told if progress.ordinary else progress.reason
    if why != told and order.explain is not None:
        await order.explain(why)
    return why


async def _heard(news: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await news.wait()
