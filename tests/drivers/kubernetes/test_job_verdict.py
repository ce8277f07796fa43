"""How far a job is, from what Kubernetes shows: every end has its own words."""

from dataclasses import replace
from typing import Any

import pytest
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Event, Pod

from contracts.orders import MIB, order
from hansa.drivers.kubernetes import job_verdict
from hansa.services import RunOrder, StorageIO

OUTPUT = (StorageIO(storage_provider="minio.default", path="bucket/out"),)
STARTED = "2026-01-02T03:04:05Z"


def a_job(*conditions: dict[str, str]) -> Any:
    return Job.from_dict({"metadata": {"name": "j"}, "status": {"conditions": list(conditions)}})


async def gate() -> bool:
    return True


COMPLETE = {"type": "Complete", "status": "True"}
FAILED = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"}


def a_pod(
    script: dict[str, Any] | None = None,
    *,
    stage_in: dict[str, Any] | None = None,
    stage_out: dict[str, Any] | None = None,
    **status: Any,
) -> Any:
    staged = [
        {"name": name, "image": "s", "imageID": "", "ready": False, "restartCount": 0, "state": state}
        for name, state in (("stage-in", stage_in), ("stage-out", stage_out))
        if state is not None
    ]
    own = [{"name": "script", "image": "i:1", "imageID": "", "ready": False, "restartCount": 0, "state": script or {}}]
    return Pod.from_dict(
        {
            "metadata": {"name": "j-x"},
            "status": {"initContainerStatuses": staged, "containerStatuses": own, **status},
        }
    )


def ended(code: int, message: str = "", reason: str = "") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "message": message, "reason": reason}}


def outcome(asked: RunOrder, job: Any, pod: Any) -> tuple[bool, int | None, str]:
    found = job_verdict.progress(asked, job, pod)
    assert isinstance(found, job_verdict.Ended)
    return found.outcome.succeeded, found.outcome.exit_code, found.outcome.reason


def test_a_good_end_with_the_time_it_took() -> None:
    found = job_verdict.progress(order(""), a_job(COMPLETE), a_pod(ended(0, "0m0.010s 0m0.000s\n0m1.250s 1m0.500s\n")))
    assert isinstance(found, job_verdict.Ended)
    assert (found.outcome.succeeded, found.outcome.exit_code, found.outcome.reason) == (True, 0, "")
    assert found.outcome.cpu_seconds == pytest.approx(61.76)


def test_outputs_that_could_not_be_stored_fail_the_job() -> None:
    asked = order("", output=OUTPUT)
    lost = a_pod(ended(0), stage_out=ended(1, '{"error":"an output could not be stored: gone"}'))
    assert outcome(asked, a_job(COMPLETE), lost) == (False, 0, "an output could not be stored: gone")
    dead = a_pod(ended(0), stage_out=ended(1, "Traceback: no memory"))
    assert outcome(asked, a_job(COMPLETE), dead) == (False, 0, "stage-out failed: Traceback: no memory")
    away = a_pod(ended(0), stage_out=ended(0, '{"thrown_away":true}'))
    assert outcome(asked, a_job(COMPLETE), away)[0] is False


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (a_pod(ended(7)), (7, "exit code 7")),
        (a_pod(ended(127)), (127, "exit code 127 (a command was not found)")),
        (a_pod(ended(137, reason="OOMKilled")), (137, "out of memory: used more than 32Mi")),
        (
            a_pod({}, stage_in=ended(1, '{"error":"the script was not started: gone"}')),
            (None, "the script was not started: gone"),
        ),
        (a_pod(ended(143), reason="Evicted", message="low on disk"), (143, "evicted by Kubernetes: low on disk")),
        (None, (None, "Kubernetes gave it up: too often")),
    ],
    ids=["code", "not found", "memory", "input", "evicted", "no pod"],
)
def test_bad_ends(pod: Any, expected: tuple[int | None, str]) -> None:
    assert outcome(order("", memory=32 * MIB), a_job(FAILED), pod) == (False, *expected)


def test_a_time_limit_is_the_one_that_was_asked_for() -> None:
    over = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}
    assert outcome(order("", seconds=1.5), a_job(over), a_pod(ended(137))) == (
        False,
        None,
        "time limit of 1.5 s reached",
    )


def test_before_its_end() -> None:
    asked = order("", output=OUTPUT)
    assert isinstance(job_verdict.progress(asked, a_job(), None), job_verdict.Waits)
    runs = job_verdict.progress(asked, a_job(), a_pod({"running": {"startedAt": STARTED}}))
    assert runs == job_verdict.Runs(1767323045.0)
    gated = replace(asked, may_publish=gate)
    assert job_verdict.progress(gated, a_job(), a_pod(ended(0))) == job_verdict.Asks()
    assert job_verdict.progress(gated, a_job(), a_pod(ended(1))) == job_verdict.Runs(None)
    assert job_verdict.progress(asked, a_job(), a_pod(ended(0))) == job_verdict.Runs(None)  # storing them


def test_nothing_is_waited_for_once_all_containers_have_ended() -> None:
    asked = order("", output=OUTPUT)
    assert outcome(asked, a_job(), a_pod(ended(0), stage_out=ended(0, '{"stored":1}'))) == (True, 0, "")
    assert outcome(asked, a_job(), a_pod(ended(3), stage_out=ended(0, "{}"))) == (False, 3, "exit code 3")
    assert outcome(order(""), a_job(), a_pod(ended(0))) == (True, 0, "")


def test_one_that_is_being_taken_away_is_not_judged_by_its_exit_code() -> None:
    gone = a_pod(ended(137))
    gone.metadata.deletionTimestamp = gone.metadata.creationTimestamp or "now"
    assert job_verdict.progress(order(""), a_job(), gone) == job_verdict.Runs(None)
    drained = a_pod(ended(143), conditions=[{"type": "DisruptionTarget", "status": "True"}])
    assert job_verdict.progress(order(""), a_job(), drained) == job_verdict.Runs(None)


def test_what_it_waits_for() -> None:
    def waits(pod: Any) -> job_verdict.Waits:
        found = job_verdict.progress(order(""), a_job(), pod)
        assert isinstance(found, job_verdict.Waits)
        return found

    pulling = waits(a_pod({"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}))
    assert (pulling.reason, pulling.hopeless) == ("image i:1 cannot be used: no such image", False)
    assert waits(a_pod({"waiting": {"reason": "InvalidImageName", "message": "bad"}})).hopeless
    full = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}]
    assert waits(a_pod({}, conditions=full)).reason == "no node has room for it: 0/1 nodes"
    assert waits(a_pod({"waiting": {"reason": "ContainerCreating"}})).reason == "its pod is being prepared"


def an_event(uid: str, message: str, at: str = STARTED) -> Any:
    about = {"kind": "Job", "name": "j", "uid": uid}
    return Event.from_dict(
        {"metadata": {"name": "e"}, "involvedObject": about, "type": "Warning", "message": message, "lastTimestamp": at}
    )


def test_why_there_is_no_pod() -> None:
    job = a_job()
    job.metadata.uid = "this"
    full = (
        'Error creating: pods "j-x" is forbidden: exceeded quota: small, requested: requests.cpu=1, used: 2, limited: 2'
    )
    other = an_event("former", "of a Job that had its name")
    assert job_verdict.without_pod(job, [other]) is None
    said = job_verdict.without_pod(
        job, [an_event("this", full, "2026-01-02T04:00:00Z"), an_event("this", "older"), other]
    )
    assert said is not None
    assert said.unplaced
    assert said.reason == "the namespace's quota is used up: small, requested: requests.cpu=1, used: 2, limited: 2"
    refused = job_verdict.without_pod(job, [an_event("this", "a webhook said no")])
    assert refused == job_verdict.Waits("Kubernetes makes no pod for it: a webhook said no")
