"""Does the real Kubernetes do what tests will ask of it, take what they do to it, and leave nothing behind?"""

import asyncio
import contextlib
import os
import re
import subprocess
from pathlib import Path

import httpx
import httpx2
import pytest
from lightkube import ApiError
from lightkube.models.batch_v1 import JobSpec
from lightkube.models.core_v1 import Container, PodSpec, PodTemplateSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Namespace, Pod

from real.kubernetes import images, shared, slots
from real.kubernetes.access import Access
from real.kubernetes.cluster import Component, KubernetesCluster, full_cluster
from real.kubernetes.fixtures import fresh_namespace, require

SECONDS = 60.0


def pod(*command: str, image: str = images.BUSYBOX) -> PodSpec:
    container = Container(name="main", image=image, command=list(command), imagePullPolicy="IfNotPresent")
    return PodSpec(containers=[container], restartPolicy="Never", terminationGracePeriodSeconds=0)


async def run_job(access: Access, namespace: str, spec: PodSpec) -> tuple[str, str]:
    """How it ended, and what it said."""
    template = PodTemplateSpec(metadata=ObjectMeta(labels={"test": "job"}), spec=spec)
    job = Job(
        metadata=ObjectMeta(generateName="job-", namespace=namespace), spec=JobSpec(template=template, backoffLimit=0)
    )
    async with asyncio.timeout(SECONDS), access.client() as api:
        made = await api.create(job)
        assert made.metadata is not None
        assert made.metadata.name is not None
        name = made.metadata.name
        ended = await api.wait(Job, name, for_conditions=["Complete", "Failed"], namespace=namespace)
        assert ended.status is not None
        (how,) = [one for one in ended.status.conditions or [] if one.type in {"Complete", "Failed"}]
        said = ""
        async for member in api.list(Pod, namespace=namespace, labels={"job-name": name}):
            assert member.metadata is not None
            assert member.metadata.name is not None
            said += "".join([line async for line in api.log(member.metadata.name, namespace=namespace)])
    return f"{how.type} {how.reason or ''}".strip(), said.strip()


async def test_a_job_runs_to_its_end_and_its_words_are_read(kubernetes: Access, kubernetes_namespace: str) -> None:
    how, said = await run_job(kubernetes, kubernetes_namespace, pod("echo", "land in sight"))
    assert how.startswith("Complete")
    assert said == "land in sight"


async def test_a_job_that_fails_is_seen_as_failed(kubernetes: Access, kubernetes_namespace: str) -> None:
    how, said = await run_job(kubernetes, kubernetes_namespace, pod("sh", "-c", "echo leak; exit 3"))
    assert how == "Failed BackoffLimitExceeded"
    assert said == "leak"


async def test_python_runs_in_an_image_made_without_an_engine(kubernetes: Access, kubernetes_namespace: str) -> None:
    await asyncio.to_thread(kubernetes.import_image, images.python())
    program = "import os, sqlite3, ssl; print(os.getuid(), len(ssl.create_default_context().get_ca_certs()) > 50)"
    how, said = await run_job(kubernetes, kubernetes_namespace, pod("python3", "-c", program, image=images.PYTHON))
    assert (how.split()[0], said) == ("Complete", "65534 True")


async def test_an_image_that_is_nowhere_is_seen(kubernetes: Access, kubernetes_namespace: str) -> None:
    wanted = Pod(
        metadata=ObjectMeta(name="ghost", namespace=kubernetes_namespace),
        spec=pod("true", image="localhost/ghost-ship:1"),
    )
    async with asyncio.timeout(SECONDS), kubernetes.client() as api:
        await api.create(wanted)
        async for _, seen in api.watch(Pod, namespace=kubernetes_namespace):
            states = (seen.status and seen.status.containerStatuses) or []
            reasons = {one.state.waiting.reason for one in states if one.state and one.state.waiting}
            if reasons & {"ErrImagePull", "ImagePullBackOff"}:
                break


async def test_a_killed_api_comes_back_with_all_it_knew(breakable_kubernetes: KubernetesCluster) -> None:
    async with fresh_namespace(breakable_kubernetes.access) as name, breakable_kubernetes.access.client() as api:
        await asyncio.to_thread(breakable_kubernetes.kill, Component.API)
        with pytest.raises(httpx2.ConnectError):
            await api.get(Namespace, name)
        await asyncio.to_thread(breakable_kubernetes.again, Component.API)
        await asyncio.to_thread(breakable_kubernetes.wait)
        assert (await api.get(Namespace, name)).metadata is not None


def test_a_cut_link_is_silence_and_inside_all_goes_on(breakable_kubernetes: KubernetesCluster) -> None:
    access = breakable_kubernetes.access
    with access.http() as door:
        assert door.get("/readyz").text == "ok"
        breakable_kubernetes.cut()
        with pytest.raises(httpx.TransportError):
            door.get("/readyz", timeout=1.0)
        assert "Server:" in access.inside("ctr", "version")
        breakable_kubernetes.heal()
        assert door.get("/readyz").text == "ok"


async def test_an_api_alone_refuses_whom_it_does_not_know(kubernetes_api: KubernetesCluster) -> None:
    with kubernetes_api.access.http() as door:
        assert door.get("/version").json()["gitVersion"].startswith("v1.")
        assert door.get("/version", headers={"Authorization": "Bearer stowaway"}).status_code == 401
    async with fresh_namespace(kubernetes_api.access) as name, kubernetes_api.access.client() as api:
        wanted = Pod(metadata=ObjectMeta(name="waits", namespace=name), spec=pod("true"))
        await api.create(wanted)
        with pytest.raises(ApiError, match="already exists"):
            await api.create(wanted)


def test_guests_share_one_cluster_and_the_last_leaves_nothing() -> None:
    require(full=True)
    run = f"test-{os.getpid()}"
    with shared.joined(run) as one, shared.joined(run) as other:
        assert one == other
        folder = one.kubeconfig.parents[1]
        (slot,) = [slots.Slot(number) for number in range(200) if slots.Slot(number).address in one.server]
        assert slot.groups.members()
        assert Path("/sys/class/net", slot.link).exists()
        assert traces(slot, folder)
    assert not traces(slot, folder)


def test_what_fails_while_a_cluster_is_up_leaves_nothing(tmp_path: Path) -> None:
    require(full=True)
    (tmp_path / "wreck.tar").write_text("no image")
    with pytest.raises(RuntimeError, match="ctr"), full_cluster([tmp_path / "wreck.tar"]):
        pytest.fail("a cluster without its images is none")


def test_what_a_killed_run_left_is_removed_by_the_next() -> None:
    require(full=True)
    with slots.taken() as slot:
        slot.groups.make()
        left = subprocess.Popen(["sleep", "600"])
        try:
            for entry in slot.groups.entries():
                entry.write_text(str(left.pid))
            subprocess.run(["ip", "link", "add", slot.link, "type", "veth"], check=True, timeout=SECONDS)
            slots.sweep(slot)
            assert left.wait(SECONDS) == -9
        finally:
            left.kill()
            left.wait()
        assert not slot.groups.folders()
        assert not Path("/sys/class/net", slot.link).exists()


def traces(slot: slots.Slot, folder: Path) -> list[str]:
    """What can be seen of a cluster from outside: processes, mounts, control groups, link, folder."""
    found = [str(path) for path in (folder, Path("/sys/class/net", slot.link), *slot.groups.folders()) if path.exists()]
    # The whole name: a folder of another cluster (`hansa-k8s-398c-…`) begins like our group (`hansa-k8s-3`).
    group = re.compile(rf"/{re.escape(slot.groups.name)}(?![\w-])")
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            about = "".join((process / name).read_text() for name in ("cmdline", "mountinfo", "cgroup"))
            if str(folder) in about or group.search(about):
                found.append(str(process))
    return found
