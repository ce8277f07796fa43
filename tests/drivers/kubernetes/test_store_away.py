"""What becomes of a job while the object store is away? It waits for a while, and what its script did is its end.

The API server is real, and pods are made; that a node runs them is written by the test.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import PodStatus

from contracts.orders import order
from hansa.drivers.kubernetes import job_manifest
from hansa.drivers.kubernetes.engine import Engine
from hansa.drivers.kubernetes.job_host import KubernetesJobHost
from hansa.drivers.kubernetes.job_logs import KubernetesLogs
from hansa.drivers.s3 import OpenStore, S3Store
from hansa.drivers.s3.client import Limits
from hansa.drivers.s3.errors import StoreUnreachable
from hansa.services import Outcome, RunOrder, StorageIO
from real.gate import Gate, gate

pytest_plugins = ("real.object_store",)

SECONDS = 60.0
SHORT = 1.0  # in which a run that does not wait has failed
ELSEWHERE = {"s3": {"far": {"endpoint": "https://far.example", "access_key": "a", "secret_key": "s"}}}
OUTPUT = (StorageIO(storage_provider="s3.far", path="bucket/out"),)
LONG_AGO, ENDED_AT = "2020-01-01T00:00:00Z", "2020-01-01T00:00:01Z"


@dataclass(frozen=True, slots=True)
class Stage:
    engine: Engine
    logs: KubernetesLogs
    store: S3Store
    bucket: str
    between: Gate

    def host(self, store_patience: float) -> KubernetesJobHost:
        return KubernetesJobHost(
            self.engine, self.logs, store=self.store, bucket=self.bucket, store_patience=store_patience
        )

    async def pod(self, job: RunOrder) -> Any:
        async with asyncio.timeout(SECONDS):
            while (found := self.engine.board.pod(job.name)) is None:
                await asyncio.sleep(0.05)
        return found

    async def script(self, job: RunOrder, **state: Any) -> None:
        """Its node says this of the script."""
        pod = await self.pod(job)
        said = {"name": "script", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": state}
        await self.engine.api.merge(
            PodStatus, pod.metadata.name, pod.metadata.namespace, {"status": {"containerStatuses": [said]}}
        )


@pytest.fixture
async def stage(engine: Engine, object_store: OpenStore) -> AsyncIterator[Stage]:
    inner = urlsplit(object_store.store.address.endpoint)
    assert inner.hostname is not None
    assert inner.port is not None
    async with contextlib.AsyncExitStack() as undo:
        between = undo.enter_context(gate((inner.hostname, inner.port)))
        quick = Limits(attempts=1, connect_seconds=1)
        store = S3Store(object_store.store.address, object_store.keys, reach_at=between.url, limits=quick)
        undo.push_async_callback(store.close)
        bucket = f"own-{secrets.token_hex(4)}"
        await store.create_bucket(bucket)
        logs = KubernetesLogs(engine.api.client, engine.board, store, bucket, limit=64 * 1024)
        yield Stage(engine, logs, store, bucket, between)


def terminated(code: int) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "startedAt": LONG_AGO, "finishedAt": ENDED_AT}}


async def still_runs(running: "asyncio.Task[Outcome]") -> bool:
    await asyncio.wait({running}, timeout=SHORT)
    return not running.done()


async def ended(running: "asyncio.Task[Outcome]") -> Outcome:
    async with asyncio.timeout(SECONDS):
        return await running


async def test_a_job_that_ended_well_did_so_without_its_log(stage: Stage) -> None:
    job = order("true")
    running = asyncio.create_task(stage.host(store_patience=0.5).run(job))
    await stage.pod(job)
    stage.between.shut()
    await stage.script(job, **terminated(0))
    assert (await ended(running)).succeeded


async def test_what_was_sent_waits_for_the_store(stage: Stage) -> None:
    job = order("true", event=b"x" * (job_manifest.LARGEST_EVENT + 1))
    stage.between.shut()
    running = asyncio.create_task(stage.host(store_patience=SECONDS).run(job))
    assert await still_runs(running)
    stage.between.open()
    await stage.script(job, **terminated(0))
    assert (await ended(running)).succeeded


async def test_but_not_for_ever(stage: Stage) -> None:
    stage.between.shut()
    with pytest.raises(StoreUnreachable):
        await stage.host(store_patience=0.5).run(order("true", event=b"x" * (job_manifest.LARGEST_EVENT + 1)))


async def test_the_word_on_its_outputs_is_given_once_it_can_be(stage: Stage) -> None:
    asked = 0

    async def yes() -> bool:
        nonlocal asked
        asked += 1
        return True

    job = replace(order("true", output=OUTPUT, storage_providers=ELSEWHERE), may_publish=yes)
    running = asyncio.create_task(stage.host(store_patience=SECONDS).run(job))
    await stage.pod(job)
    stage.between.shut()
    await stage.script(job, **terminated(0))
    assert await still_runs(running)
    stage.between.open()
    async with asyncio.timeout(SECONDS):
        while not asked or f"gates/{job.name}" not in await gates(stage):
            await asyncio.sleep(0.05)
    assert await stage.store.get(stage.bucket, f"gates/{job.name}") == b"yes"
    running.cancel()
    await asyncio.wait({running})


async def gates(stage: Stage) -> set[str]:
    return {one.key for one in (await stage.store.list(stage.bucket, "gates/", "")).objects}


async def test_nobody_runs_longer_because_the_log_cannot_be_kept(stage: Stage) -> None:
    job = order("true", seconds=1)
    running = asyncio.create_task(stage.host(store_patience=SECONDS).run(job))
    pod = await stage.pod(job)
    stage.between.shut()
    await stage.script(job, running={"startedAt": LONG_AGO})
    async with asyncio.timeout(SECONDS):
        while (found := await stage.engine.api.get(Job, job.name, pod.metadata.namespace)) is not None:
            if found.spec.activeDeadlineSeconds == 1:
                break
            await asyncio.sleep(0.05)
    assert found is not None
    running.cancel()
    await asyncio.wait({running})


async def test_what_is_discarded_goes_all_the_same(stage: Stage) -> None:
    job, host = order("true"), stage.host(store_patience=SECONDS)
    running = asyncio.create_task(host.run(job))
    pod = await stage.pod(job)
    running.cancel()
    await asyncio.wait({running})
    stage.between.shut()
    await host.discard(job.name)
    async with asyncio.timeout(SECONDS):
        while await stage.engine.api.get(Job, job.name, pod.metadata.namespace) is not None:
            await asyncio.sleep(0.05)
