"""More jobs than fit wait in order; what is promised is never more than there is; limits hold for each job."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from journeys.faults.conftest import running_scene
from journeys.faults.scene import Scene, Service, definition
from journeys.waiting import all_jobs, eventually
from real.identity_provider import IdentityProvider
from real.manager import trusting

STAMP = "date +%s%N > $TMP_OUTPUT_DIR/$(cat $INPUT_FILE_PATH); sleep 0.3"


@pytest.fixture(scope="module")
def small(sign_in_provider: IdentityProvider) -> Iterator[Scene]:
    """One processor and little memory to give away, half of it to any one user."""
    tight = {"jobs.cpu": "1", "jobs.memory": "512Mi", "quotas.cpu": "500m", "quotas.memory": "1Gi"}
    with running_scene({**trusting(sign_in_provider), **tight}) as scene:
        yield scene


class Watch:
    """Looks at what is promised, and at what the kernel was told, as long as the block lasts."""

    def __init__(self, scene: Scene) -> None:
        self._scene, self._over = scene, threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.most_promised, self.most_limits, self.looks = 0, 0, 0

    def __enter__(self) -> "Watch":
        self._scene.admin.get("/v1/node")  # the client is made before the thread uses it
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(10)
        assert self.looks > 5

    def _look(self) -> None:
        while not self._over.wait(0.02):
            told = self._scene.admin.get("/v1/node").json()
            assert told["promised"]["memory"] <= told["capacity"]["memory"]
            self.most_promised = max(self.most_promised, told["promised"]["cpu"])
            self.most_limits = max(self.most_limits, sum(limits(self._scene)))
            self.looks += 1


def limits(scene: Scene) -> list[int]:
    """Thousandths of a processor that each running job may use, as the kernel enforces it."""
    found = []
    for group in {path.name: path for path in scene.job_groups()}.values():
        for file in (
            group / "cpu.max",
            Path("/sys/fs/cgroup/cpu") / group.parent.name / group.name / "cpu.cfs_quota_us",
        ):
            try:
                found.append(int(file.read_text().split()[0]) // 100)
            except (OSError, ValueError):
                continue
            break
    return found


def test_jobs_wait_in_order_and_nothing_is_promised_twice(small: Scene) -> None:
    service = small.service("line", STAMP, cpu="0.6")
    numbers = [f"{number:02}" for number in range(6)]
    with Watch(small) as watch:
        jobs = [small.submit(service, number) for number in numbers]
        assert "Pending" in small.statuses(service)
        small.await_end(service, len(jobs))
    assert 0 < watch.most_promised <= 1000
    assert 0 < watch.most_limits <= 1000
    stamps = [
        int(small.objects.get_object(Bucket=service.bucket, Key=f"out/{number}")["Body"].read()) for number in numbers
    ]
    assert stamps == sorted(stamps)


def test_small_jobs_share_what_there_is(small: Scene) -> None:
    service = small.service("shared", STAMP, cpu="0.3", memory="64Mi")
    with Watch(small) as watch:
        for number in range(8):
            small.submit(service, str(number))
        assert set(small.await_end(service, 8)) == {"Succeeded"}
    assert 600 <= watch.most_promised <= 1000
    assert watch.most_limits <= 1000


def test_a_user_over_quota_waits_without_holding_up_others(small: Scene, sign_in_provider: IdentityProvider) -> None:
    script = "while [ ! -e /tmp/never ]; do sleep 0.2; done"
    clients = {who: small.manager.bearer(sign_in_provider.token(who)) for who in ("alice", "bob")}
    greedy, modest = "greedy-alice", "modest-bob"
    for who, name in (("alice", greedy), ("bob", modest)):
        made = clients[who].post("/system/services", json=definition(name, script, cpu="0.4"))
        assert made.status_code == 201, made.text
    try:
        for _ in range(2):  # 800m of alice's 500m
            assert clients["alice"].post(f"/job/{greedy}").status_code == 201
        assert clients["bob"].post(f"/job/{modest}").status_code == 201
        eventually(lambda: states(small, modest) == ["Running"], what="bob's job running")
        assert sorted(states(small, greedy)) == ["Pending", "Running"]
        first = next(name for name, job in all_jobs(small.admin, greedy).items() if job["status"] == "Running")
        assert small.admin.delete(f"/system/logs/{greedy}/{first}").status_code == 204
        eventually(lambda: states(small, greedy) == ["Running"], what="alice's second job running")
    finally:
        for name in (greedy, modest):
            small.admin.delete(f"/system/services/{name}")
    small.await_no_trace()


def states(scene: Scene, service: str) -> list[str]:
    return [job["status"] for job in all_jobs(scene.admin, service).values()]


def test_what_can_never_fit_fails_at_once(small: Scene) -> None:
    blocker = small.service("blocker", "sleep 1000", cpu="0.9")
    waiter = small.service("waiter", "true", cpu="0.5")
    giant = small.service("giant", "true", cpu="4")
    small.submit(blocker)
    small.submit(waiter)  # of the same owner, and in front
    job = small.submit(giant)
    assert small.await_end(giant, 1, seconds=10) == ["Failed"]
    assert "it needs 4000m cpu, this cluster has 1000m" in small.log(giant, job)
    assert small.statuses(waiter) == ["Pending"]
    assert small.admin.delete(f"/system/services/{blocker.name}").status_code == 204
    assert small.await_end(waiter, 1) == ["Succeeded"]


def end_of(scene: Scene, service: Service) -> tuple[str, str]:
    job = scene.submit(service)
    return scene.await_end(service, 1)[0], scene.log(service, job)


def test_memory_runs_out_for_the_job_alone(rough: Scene) -> None:
    status, log = end_of(rough, rough.service("hungry", "tail /dev/zero", memory="64Mi"))
    assert status == "Failed"
    assert "out of memory: used more than 64Mi" in log


def test_processes_run_out(rough: Scene) -> None:
    status, log = end_of(rough, rough.service("bomb", "for i in $(seq 100); do sleep 30 & done; echo all started"))
    assert status == "Failed"
    assert "all started" not in log
    rough.await_no_trace()


def test_processor_time_is_shared_out(rough: Scene) -> None:
    script = "timeout 2 sh -c 'while :; do :; done'; cut -d' ' -f16,17 /proc/self/stat; cat /proc/$$/stat"
    status, log = end_of(rough, rough.service("busy", script, cpu="0.2"))
    assert status == "Succeeded", log
    children_ticks = [int(ticks) for ticks in log.strip().splitlines()[-2].rpartition(")")[2].split()[13:15]]
    used = sum(children_ticks) / 100
    assert re.search(r"\d", log)
    assert used < 0.9, f"used {used} s of processor time in 2 s with a share of 0.2"
