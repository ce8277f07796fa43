"""How far is a job? Pure: from the Job and its pod, as Kubernetes shows them, to a state with a reason.

What a pod says of its containers wins over the Job's own summary, which only knows that something failed.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from hansa import services
from hansa.drivers.kubernetes import job_manifest, pod_status, pods
from hansa.drivers.kubernetes.stager.paper import Told
from hansa.drivers.runs import plans, words

_NEVER = frozenset({"InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError"})
_PULLING = frozenset({"ErrImagePull", "ImagePullBackOff"})
_QUOTA = re.compile(r"exceeded quota: (.+)", re.DOTALL)
_LONG_AGO = datetime.fromtimestamp(0, UTC)
_TIMES = re.compile(r"(\d+)m([\d.]+)s\s+(\d+)m([\d.]+)s")


@dataclass(frozen=True, slots=True)
class Waits:
    """It has not begun; `hopeless` if it never will, by what is seen now."""

    reason: str
    hopeless: bool = False
    unplaced: bool = False  # there is no room for it
    pulls: bool = False  # its image is not here yet
    ordinary: bool = False  # every job waits so for a moment


@dataclass(frozen=True, slots=True)
class Runs:
    """Since when its script runs, or None while the pod is about to begin or to end."""

    since: float | None


@dataclass(frozen=True, slots=True)
class Asks:
    """Its script ended well, and its outputs wait for a decision, or are being stored by one."""


@dataclass(frozen=True, slots=True)
class Ended:
    outcome: services.Outcome


Progress = Waits | Runs | Asks | Ended


def progress(order: services.RunOrder, job: Any, pod: Any | None) -> Progress:
    finished = _finished(job)
    if finished is not None:
        return Ended(_outcome(order, finished, pod))
    if pod is None and job.spec is not None and job.spec.suspend:
        return Waits("it waits in the queue for Kueue to admit it", unplaced=True)
    if pod is None:
        return Waits("it waits for Kubernetes to make its pod", ordinary=True)
    script = _state(pod, pods.SCRIPT)
    if script is not None and script.running is not None:
        return Runs(script.running.startedAt.timestamp() if script.running.startedAt else None)
    if script is None or script.terminated is None:
        return _waits(order, pod)
    if _is_being_taken_away(pod):
        return Runs(None)  # the Job will tell why, or make another
    good = script.terminated.exitCode == 0
    if plans.carries(order) and not _has_ended(pod, job_manifest.STAGE_OUT):
        return Asks() if good and order.may_publish is not None else Runs(None)
    # Nothing can change any more; the Job itself says so only seconds later.
    return Ended(_outcome(order, (good, "", ""), pod))


def _waits(order: services.RunOrder, pod: Any) -> Waits | Runs:
    for status in pod_status.containers(pod):
        waiting = status.state.waiting if status.state is not None else None
        reason = (waiting.reason or "") if waiting is not None else ""
        if waiting is not None and reason in _NEVER | _PULLING:
            what = (
                f"image {status.image or order.service.image} cannot be used"
                if "mage" in reason
                else "the pod cannot start"
            )
            return Waits(f"{what}: {waiting.message or reason}", hopeless=reason in _NEVER, pulls=reason in _PULLING)
    no_room = pod_status.no_room(pod)
    return Waits(no_room, unplaced=True) if no_room else Waits("its pod is being prepared", ordinary=True)


def without_pod(job: Any, events: Iterable[Any]) -> Waits | None:
    """Why Kubernetes makes no pod for it, which it tells in events alone."""
    of_this = [one for one in events if one.involvedObject.uid == job.metadata.uid and one.type == "Warning"]
    last = max(of_this, key=lambda one: one.lastTimestamp or one.eventTime or _LONG_AGO, default=None)
    if last is None:
        return None
    if (quota := _QUOTA.search(last.message or "")) is not None:
        return Waits(f"the namespace's quota is used up: {quota[1]}", unplaced=True)
    return Waits(f"Kubernetes makes no pod for it: {last.message or last.reason}")


def _outcome(order: services.RunOrder, finished: tuple[bool, str, str], pod: Any | None) -> services.Outcome:
    succeeded, reason, message = finished
    script = _state(pod, pods.SCRIPT)
    ended = script.terminated if script is not None else None
    code = ended.exitCode if ended is not None else None
    spent = _cpu_seconds(ended.message or "") if ended is not None else 0.0
    carried = told(pod, job_manifest.STAGE_OUT)
    if succeeded:
        if carried.error:
            return services.Outcome(False, code, carried.error, spent)
        if carried.thrown_away:
            return services.Outcome(False, code, services.delegation.SUPERSEDED, spent)
        return services.Outcome(True, 0, "", spent)
    if reason == "DeadlineExceeded":
        return services.Outcome(False, None, words.time_limit(order.seconds), spent)
    brought = told(pod, job_manifest.STAGE_IN)
    if brought.error:
        return services.Outcome(False, None, brought.error)
    if pod is not None and pod.status is not None and pod.status.reason == "Evicted":
        return services.Outcome(False, code, f"evicted by Kubernetes: {pod.status.message or 'no reason given'}", spent)
    if ended is not None and ended.reason == "OOMKilled":
        return services.Outcome(False, code, words.out_of_memory(order.memory), spent)
    if code:
        return services.Outcome(False, code, words.exit_code(code), spent)
    said = message or reason or "no reason given"
    return services.Outcome(False, code, f"Kubernetes gave it up: {said}", spent)


def told(pod: Any | None, container: str) -> Told:
    """The last word of a stager."""
    state = _state(pod, container)
    if state is None or state.terminated is None:
        return Told()
    try:
        return msgspec.json.decode(state.terminated.message or "{}", type=Told)
    except msgspec.DecodeError:  # it died before it could speak: these are its last lines
        return Told(error=f"{container} failed: {state.terminated.message or state.terminated.reason}"[:2000])


def _finished(job: Any) -> tuple[bool, str, str] | None:
    """Whether it succeeded, with the Job's own reason and message; None while it goes on."""
    for condition in (job.status.conditions or ()) if job.status is not None else ():
        if condition.type in ("Complete", "Failed") and condition.status == "True":
            return condition.type == "Complete", condition.reason or "", condition.message or ""
    return None


def _is_being_taken_away(pod: Any) -> bool:
    """Deleted, evicted, preempted, its node drained or lost."""
    disrupted = pod_status.conditions(pod).get("DisruptionTarget")
    return pod.metadata.deletionTimestamp is not None or (disrupted is not None and disrupted.status == "True")


def may_wait_at_gate(pod: Any) -> bool:
    return _state(pod, job_manifest.STAGE_OUT) is not None and not _has_ended(pod, job_manifest.STAGE_OUT)


def _has_ended(pod: Any, container: str) -> bool:
    state = _state(pod, container)
    return state is not None and state.terminated is not None


def _state(pod: Any | None, container: str) -> Any | None:
    status = pod_status.container(pod, container)
    return status.state if status is not None else None


def _cpu_seconds(said: str) -> float:
    """What the shell's `times` printed: itself in the first line, the script and all it started in the second."""
    spent = [int(m1) * 60 + float(s1) + int(m2) * 60 + float(s2) for m1, s1, m2, s2 in _TIMES.findall(said)]
    return round(sum(spent), 3)
