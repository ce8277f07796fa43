"""What does Hansa add to a job in Kubernetes? Against plain Jobs of the same image and command, in one real cluster."""

import asyncio
import re
import secrets
import statistics
import time
from collections.abc import Awaitable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from lightkube import AsyncClient
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Namespace, ServiceAccount

from bench.figures import Figure, Part, Sizes, percentile
from hansa import services
from hansa.store import Database, JobStore, make_engine, sqlite_url
from real.kubernetes import kubernetes_manager as managers
from real.kubernetes import preparation
from real.kubernetes.access import Access
from real.kubernetes.cluster import full_cluster
from real.manager import Manager

T = TypeVar("T")
_TITLE = "Jobs in Kubernetes"
_SERVICE = "bench-job"
_CPU, _MEMORY = "100m", "32Mi"
_COMMAND = "echo fine"
_AT_ONCE = 8
_PATIENCE = 900.0
_IDLE = 10.0  # seconds
_CALLS = re.compile(r"^apiserver_request_total\{.*\} ([\d.e+]+)$", re.MULTILINE)


def on_kubernetes(sizes: Sizes) -> Part:
    why = preparation.hindrance(full=True)
    if why:
        return Part(_TITLE, "Not measured.", (Figure("left out", why),))
    with full_cluster() as cluster:
        managers.bring_images(cluster.access)
        managers.reach_pods(cluster.access)
        with managers.kubernetes_manager(cluster.access, {"jobs.page_size": 50, "log.level": "warning"}) as manager:
            return _measured(manager, cluster.access, sizes)


def _measured(manager: Manager, access: Access, sizes: Sizes) -> Part:
    definition = {"name": _SERVICE, "image": "debian", "cpu": _CPU, "memory": _MEMORY, "script": _COMMAND}
    made = manager.admin.post("/system/services", json=definition)
    assert made.status_code == 201, made.text
    ours = _Ours(manager, manager.admin.get(f"/system/services/{_SERVICE}").json()["token"])
    with asyncio.Runner() as runner:
        plain = runner.run(_Plain.open(access))
        alone: dict[str, list[float]] = {"plain": [], "hansa": []}
        for turn in range(sizes.kubernetes_jobs + 1):
            for name, took in (("plain", runner.run(plain.took(1))), ("hansa", ours.took(1))):
                if turn:  # the first one warms up
                    alone[name].append(took)
        idle = _calls_a_second(access)
        burst, calls = {}, {}
        for name, work in (("plain", lambda n: runner.run(plain.took(n))), ("hansa", ours.took)):
            before = _calls(access)
            burst[name] = work(sizes.burst)
            calls[name] = (_calls(access) - before - idle * burst[name]) / sizes.burst
        runner.run(plain.close())
    kept = _many_ended(manager, sizes.finished)
    ratio = statistics.median(alone["hansa"]) / statistics.median(alone["plain"])
    together = burst["hansa"] / burst["plain"]
    return Part(
        _TITLE,
        f"A real Kubernetes of one node, on this machine, and `{_COMMAND}` in the same image with the same requests "
        f"and limits ({_CPU} of a processor). {sizes.kubernetes_jobs} jobs of each kind in turns, one at a time: from "
        "the request (`POST /job`; the creation of a Job through the API) until its end is known (on record in Hansa, "
        f"log included; told by a watch). Then {sizes.burst} of each at once. Calls are the API server's own count, "
        "without what it counts while nothing happens; all components' calls are in it.",
        (
            Figure(
                "one job, against a plain Job",
                f"{ratio:.2f}x",
                "at most 1.15x",
                ratio <= 1.15,
                "not quicker work, but an earlier word: Hansa reads the end from the pod, a plain Job is told by its "
                "condition Complete",
            ),
            Figure("one job", _times(alone["hansa"])),
            Figure("one plain Job", _times(alone["plain"])),
            Figure(
                f"{sizes.burst} jobs at once, against plain Jobs", f"{together:.2f}x", "at most 1.15x", together <= 1.15
            ),
            Figure(
                f"{sizes.burst} jobs at once", f"{burst['hansa']:.1f} s", means="from the first request to the last end"
            ),
            Figure(f"{sizes.burst} plain Jobs at once", f"{burst['plain']:.1f} s"),
            Figure(
                "calls to the API server for a job",
                f"{calls['hansa']:.1f}",
                means=f"{calls['plain']:.1f} for a plain Job, most of them by Kubernetes itself; plain Jobs stay, "
                "Hansa's are taken away, which is in it",
            ),
            *kept,
        ),
    )


def _times(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} s (95 %: {percentile(values, 0.95):.2f} s)"


@dataclass(frozen=True, slots=True)
class _Ours:
    manager: Manager
    token: str

    def took(self, count: int) -> float:
        """Seconds from the first request to the last end."""
        began = time.time()
        with ThreadPoolExecutor(min(count, _AT_ONCE)) as pool:
            jobs = list(pool.map(lambda _: self._submitted(), range(count)))
        return max(self._ended(job) for job in jobs) - began

    def _submitted(self) -> str:
        accepted = self.manager.bearer(self.token).post(f"/job/{_SERVICE}", content=b"x")
        assert accepted.status_code == 201, accepted.text
        return accepted.headers["x-hansa-job"]

    def _ended(self, job: str) -> float:
        """When, by the manager's clock, which is ours."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            told = self.manager.admin.get(f"/v1/jobs/{job}").json()
            if told["status"] in ("Succeeded", "Failed"):
                assert told["status"] == "Succeeded", told
                return float(told["finished"])
            time.sleep(0.2)  # not busily: asking takes from what is measured
        raise RuntimeError(f"job {job} did not end")


@dataclass(frozen=True, slots=True)
class _Plain:
    api: AsyncClient
    namespace: str

    @classmethod
    async def open(cls, access: Access) -> "_Plain":
        made = cls(access.client(), f"plain-{secrets.token_hex(3)}")
        await made.api.create(Namespace(metadata=ObjectMeta(name=made.namespace)))
        async with asyncio.timeout(60):  # pods are refused before a controller has made this
            async for _, one in made.api.watch(ServiceAccount, namespace=made.namespace):
                if one.metadata is not None and one.metadata.name == "default":
                    return made
        raise RuntimeError("a namespace has no account")

    async def close(self) -> None:
        await self.api.delete(Namespace, self.namespace)
        await self.api.close()

    async def took(self, count: int) -> float:
        names = {f"plain-{secrets.token_hex(6)}" for _ in range(count)}
        began = time.monotonic()
        async with asyncio.timeout(_PATIENCE):
            ended = asyncio.create_task(self._ended(set(names)), name="watch plain Jobs")
            await _at_most(_AT_ONCE, [self._create(name) for name in names])
            await ended
        return time.monotonic() - began

    async def _create(self, name: str) -> None:
        room = {"cpu": _CPU, "memory": _MEMORY}
        asked = {"requests": room, "limits": room}  # as Hansa's have them
        box = {"name": "x", "image": managers.DEBIAN, "imagePullPolicy": "IfNotPresent", "resources": asked}
        box["command"] = ["/bin/sh", "-c", _COMMAND]
        spec = {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [box]}}}
        whole = {"metadata": {"name": name, "namespace": self.namespace}, "spec": spec}
        await self.api.create(cast(Job, Job.from_dict(whole)))

    async def _ended(self, names: set[str]) -> None:
        async for _, one in self.api.watch(Job, namespace=self.namespace):
            told = (one.status.conditions or ()) if one.status is not None else ()
            if any(condition.type == "Complete" and condition.status == "True" for condition in told):
                names.discard(str(one.metadata and one.metadata.name))
            if not names:
                return


async def _at_most(count: int, work: Sequence[Awaitable[T]]) -> None:
    turns = asyncio.Semaphore(count)

    async def one(part: Awaitable[T]) -> None:
        async with turns:
            await part

    await asyncio.gather(*(one(part) for part in work))


def _calls(access: Access) -> float:
    with access.http() as door:
        return sum(float(number) for number in _CALLS.findall(door.get("/metrics").text))


def _calls_a_second(access: Access) -> float:
    before = _calls(access)
    time.sleep(_IDLE)
    return (_calls(access) - before) / _IDLE


def _many_ended(manager: Manager, count: int) -> tuple[Figure, ...]:
    """What a manager weighs that remembers so many, and how long their pages take."""
    manager.restart()
    manager.admin.get(f"/system/logs/{_SERVICE}")
    empty = _resident(manager)
    manager.stop()
    asyncio.run(_fill(manager, count))
    manager.start()
    times, page = [], ""
    while True:
        began = time.perf_counter()
        answer = manager.admin.get(f"/system/logs/{_SERVICE}", params={"page": page})
        times.append((time.perf_counter() - began) * 1000)
        assert answer.status_code == 200, answer.text
        page = answer.json().get("next_page", "")
        if not page:
            break
    grown = _resident(manager) - empty
    return (
        Figure(
            f"memory with {count} ended jobs",
            f"{grown / 2**20:+.1f} MiB",
            means=f"{empty / 2**20:.0f} MiB with none; all of them listed once",
        ),
        Figure(
            "a page of 50 jobs",
            f"{statistics.median(times):.1f} ms",
            means=f"of {len(times)}: the first {times[0]:.1f} ms, the last {times[-1]:.1f} ms, as clients see it",
        ),
    )


async def _fill(manager: Manager, count: int) -> None:
    """Jobs that ended, as the manager itself would have them on record."""
    database = Database(make_engine(sqlite_url(manager.data)))
    database.start()
    try:
        jobs, now = JobStore(database), time.time()

        async def one(number: int) -> None:
            job = services.Job(
                name=services.job.new_name(_SERVICE),
                service=_SERVICE,
                owner="cluster_admin",
                status=services.Status.PENDING,
                created=now - count + number,
                cpu=100,
                memory=32 * 2**20,
                event=b"x" * 100,
            )
            await jobs.accept(job)
            await jobs.begin(job.name, job.created)
            await jobs.end(job.name, services.Outcome(True, 0, ""), job.created + 1)

        await _at_most(200, [one(number) for number in range(count)])
    finally:
        await database.close()


def _resident(manager: Manager) -> int:
    told = Path("/proc", str(manager.pid), "status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", told)[0]) * 1024
