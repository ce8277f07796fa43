"""Do jobs run in Kubernetes as they do on one machine? The contract first, then what only Kubernetes risks."""

import asyncio
from dataclasses import replace

import pytest
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Pod, Secret

from contracts.job_host import JobHostContract, keys_of, log_of
from contracts.orders import order
from drivers.kubernetes.scene import Scene
from hansa.drivers.kubernetes.job_host import KubernetesJobHost
from hansa.drivers.kubernetes.job_logs import KubernetesLogs
from hansa.services import StorageIO

pytest_plugins = ("real.object_store",)


def to(bucket: str) -> tuple[StorageIO, ...]:
    return (StorageIO(storage_provider="minio.default", path=f"{bucket}/out"),)


class TestKubernetesJobHost(JobHostContract):
    pass


async def test_a_large_event_is_fetched(host: KubernetesJobHost, logs: KubernetesLogs) -> None:
    job = order(
        'wc -c < "$INPUT_FILE_PATH"; echo "${EVENT-unset}"', event=b'{"a":"' + b"x" * 900_000 + b'"}', seconds=60
    )
    outcome = await host.run(job)
    assert outcome.reason == ""
    assert "900008\nunset\n" in await log_of(logs, job.name)


async def test_a_missing_image_is_said_so(host: KubernetesJobHost) -> None:
    outcome = await host.run(order("true", image="localhost/no-such-image:1"))
    assert not outcome.succeeded
    assert "no-such-image:1 cannot be used" in outcome.reason


async def test_discarded_nothing_is_left(scene: Scene) -> None:
    job, space = order("sleep 60", seconds=60), scene.namespace
    running = asyncio.create_task(scene.host.run(job))
    async with asyncio.timeout(60):
        while await scene.api.get(Job, job.name, space) is None:
            await asyncio.sleep(0.1)
        running.cancel()
        await asyncio.wait([running])
        assert await scene.api.get(Job, job.name, space) is not None  # a manager that stops leaves it
        await scene.host.discard(job.name)
        for kind in (Secret, Job):
            while await scene.api.get(kind, job.name, space) is not None:
                await asyncio.sleep(0.1)
        while [pod async for pod in scene.api.client.list(Pod, namespace=space)]:
            await asyncio.sleep(0.1)


async def test_who_comes_back_goes_on_with_what_runs(scene: Scene) -> None:
    job = order(
        'cat /proc/sys/kernel/random/uuid; sleep 3; echo done > "$TMP_OUTPUT_DIR/x"',
        output=to(scene.bucket),
        seconds=60,
    )
    first = asyncio.create_task(scene.host.run(job))
    async with asyncio.timeout(60):
        while scene.board.pod(job.name) is None:
            await asyncio.sleep(0.05)
    first.cancel()
    await asyncio.wait([first])
    assert (await scene.host.run(job)).succeeded
    assert await scene.store.get(scene.bucket, "out/x") == b"done\n"
    assert await runs_of(scene, job.name) == 1


async def runs_of(scene: Scene, name: str) -> int:
    """How often the script printed its random number."""
    said = await log_of(scene.logs, name)
    return len([line for line in said.splitlines() if len(line) == 36])


@pytest.mark.parametrize("allowed", [True, False])
async def test_outputs_become_visible_only_if_allowed(scene: Scene, allowed: bool) -> None:
    asked = 0

    async def gate() -> bool:
        nonlocal asked
        asked += 1
        return allowed

    plain = order('echo 1 > "$TMP_OUTPUT_DIR/x"', output=to(scene.bucket), seconds=60)
    outcome = await scene.host.run(replace(plain, may_publish=gate))
    assert (outcome.succeeded, outcome.exit_code) == (allowed, 0)
    assert await keys_of(scene.store, scene.bucket) == (["out/x"] if allowed else [])
    assert asked == 1


async def test_the_logs_of_one_owner_that_are_kept_stay_within_their_share(scene: Scene) -> None:
    made = scene.api.client, scene.board, scene.store, scene.bucket, 64 * 1024
    logs, text = KubernetesLogs(*made, 128 * 1024), "2026-01-01T00:00:00Z word\n" * 1200
    await logs.keep("his", text, owner="bob")
    for number in range(8):
        await logs.keep(f"job-{number}", text, owner="alice")
    for kept in ("his", "job-7"):
        assert await logs.read(kept, timestamps=True) == text
    assert "this log was dropped for newer ones" in (await logs.read("job-0", timestamps=False) or "")
    stored = await scene.store.list(scene.bucket, "logs/", "")
    assert sum(one.size for one in stored.objects) < (64 + 128) * 1024
    again = KubernetesLogs(*made, 40 * 1024)  # a later life of the manager, with less room
    await again.recall([(f"job-{number}", "alice", float(number)) for number in range(8)])
    assert "dropped" in (await again.read("job-6", timestamps=False) or "")
    assert await again.read("job-7", timestamps=True) == text
