"""Nothing of a job outlives it, however it ends; and a launcher that dies takes no job with it for good."""

import os
import signal

from journeys.faults.conftest import StartScene
from journeys.faults.scene import PROOF, Scene, Service
from journeys.waiting import eventually

# A child that leaves the session and closes its output, so that neither a signal to the group nor an end of
# file finds it.
STUBBORN = "setsid sh -c 'trap \"\" TERM INT HUP; exec >/dev/null 2>&1; sleep 1000' & sleep 1000"


def running(scene: Scene, service: Service) -> str:
    """A job of whose processes at least the child is there."""
    job = scene.submit(service)
    eventually(lambda: len(scene.job_processes()) >= 3, what="a job with a child")
    return job


def test_nothing_is_left_after_the_time_limit(rough: Scene) -> None:
    service = rough.service("late", STUBBORN, annotations={"hansa/time-limit": "2s"})
    job = running(rough, service)
    assert rough.await_end(service, 1) == ["Failed"]
    assert "time limit of 2 s reached" in rough.log(service, job)
    rough.await_no_trace()


def test_nothing_is_left_of_a_deleted_job_or_service(rough: Scene) -> None:
    service = rough.service("unwanted", STUBBORN)
    job = running(rough, service)
    assert rough.admin.delete(f"/system/logs/{service.name}/{job}").status_code == 204
    rough.await_no_trace()
    assert rough.jobs(service) == {}
    running(rough, service)
    assert rough.admin.delete(f"/system/services/{service.name}").status_code == 204
    rough.await_no_trace()
    assert rough.admin.get("/v1/node").json()["promised"] == {"cpu": 0, "memory": 0}


def test_nothing_is_left_after_the_managers_death(start_scene: StartScene) -> None:
    scene = start_scene({"jobs.attempts": 1})
    service = scene.service("deadly", STUBBORN)
    job = running(scene, service)
    scene.manager.kill()
    scene.await_no_trace()
    scene.manager.start()
    # a job under which the manager died as often as allowed is not tried again
    assert scene.await_end(service, 1) == ["Failed"]
    assert "the manager stopped 1 times while this job ran" in scene.log(service, job)
    scene.await_no_trace()


def test_a_killed_launcher_costs_time_but_no_job(rough: Scene) -> None:
    service = rough.service("restless", PROOF.format(seconds="1"))
    numbers = [str(number) for number in range(6)]
    for number in numbers:
        rough.submit(service, number)
    eventually(rough.job_processes, what="running jobs")
    os.kill(rough.launcher_pid, signal.SIGKILL)
    rough.submit(service, "7")
    rough.await_end(service, len(numbers) + 1)
    rough.assert_proofs(service, {*numbers, "7"})
    rough.await_no_trace()
