"""What does a job look like in Kubernetes? Pure: from an order to a Secret and a Job.

The Secret carries the call (variables, event, script) and, for the stager alone, the keys of the stores. It owns the
Job: whoever deletes the Secret deletes all of it. The user's image needs a shell and nothing of ours. Inputs are
brought by an init container, outputs carried by a sidecar, both of Hansa's own image, and only where there are any.
"""

from typing import Any, cast

import msgspec
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Secret

from hansa import services
from hansa.drivers.kubernetes import labels, pods
from hansa.drivers.kubernetes.pods import PLACES, Shape
from hansa.drivers.kubernetes.stager import paper
from hansa.drivers.runs import environment, plans
from hansa.identity import ADMIN_UID
from hansa.services import events

STAGE_IN, STAGE_OUT = "stage-in", "stage-out"
LARGEST_EVENT = 512 * 1024  # a Secret holds 1 MiB
_NO_LINKS = paper.Links()
_CALL = "/hansa/call"
_QUEUE = "kueue.x-k8s.io/queue-name"
_GRACE = 5  # seconds for a script that is asked to end

# The script's end is written down for the sidecar; its processor time for us, in the container's last message.
_COMMAND = f"""
. {_CALL}/call || exit 126
/bin/sh {PLACES.config}/script.sh &
script=$!
trap 'kill -TERM $script 2>/dev/null' TERM
wait $script; code=$?
while kill -0 $script 2>/dev/null; do wait $script; code=$?; done
times > /dev/termination-log 2>/dev/null
echo $code > {paper.END} 2>/dev/null
exit $code
"""


def sent(order: services.RunOrder) -> bytes:
    """The input, if it came with the call."""
    given = events.interpret(order.event)
    return given.data if isinstance(given, events.BytesInput) else b""


def stages_in(order: services.RunOrder) -> bool:
    return plans.brings(order) or len(sent(order)) > LARGEST_EVENT


def secret(order: services.RunOrder, namespace: str, shape: Shape, links: paper.Links = _NO_LINKS) -> Secret:
    """An event that a Secret cannot carry is behind a link."""
    given = events.interpret(order.event)
    variables = environment.service_variables(order, PLACES, shape.node)
    variables |= environment.call_variables(order, given, PLACES)
    data = {**pods.config(order), "call": environment.call_file(variables)[1].encode()}
    if not stages_in(order):
        data["input"] = sent(order)
    if stages_in(order) or plans.carries(order):
        data["order.json"] = msgspec.json.encode(paper.Paper.of(order, links))
    return pods.secret(order.name, namespace, _marks(order, shape), data)


def job(order: services.RunOrder, namespace: str, shape: Shape, owner: Secret) -> Job:
    marked = _marks(order, shape)
    queued = {_QUEUE: shape.queue} if _is_queued(order, shape) else {}
    made = Job.from_dict(
        {
            "metadata": {
                "name": order.name,
                "namespace": namespace,
                "labels": marked | queued,
                "ownerReferences": pods.owned_by(owner),
            },
            "spec": {
                "suspend": bool(queued),  # until Kueue lets it begin
                "backoffLimit": 0,
                "completions": 1,
                "parallelism": 1,
                "activeDeadlineSeconds": int(order.seconds) + shape.start_within + shape.carry_within,
                "ttlSecondsAfterFinished": shape.keep,
                # A pod that Kubernetes itself takes away (drained, evicted, its node lost) is replaced.
                "podReplacementPolicy": "Failed",
                "podFailurePolicy": {
                    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
                },
                "template": {
                    "metadata": {"labels": marked},
                    "spec": _pod(order, shape),
                },
            },
        }
    )
    return cast(Job, made)


def _is_queued(order: services.RunOrder, shape: Shape) -> bool:
    """Whether Kueue admits it. Its queues count what is named in them, which is seldom disk, and let nothing in that
    requests anything else."""
    return bool(shape.queue) and order.service.owner != ADMIN_UID


def _marks(order: services.RunOrder, shape: Shape) -> dict[str, str]:
    return pods.marks(order, shape, **{labels.JOB: order.name})


def _pod(order: services.RunOrder, shape: Shape) -> dict[str, Any]:
    staged = []
    if stages_in(order):
        staged.append(_stager(STAGE_IN, "in", order, shape))
    if plans.carries(order):
        staged.append({**_stager(STAGE_OUT, "out", order, shape), "restartPolicy": "Always"})
    return pods.body(
        order,
        shape,
        restartPolicy="Never",
        terminationGracePeriodSeconds=shape.carry_within if plans.carries(order) else _GRACE,
        containers=[_script(order, shape)],
        volumes=_volumes(order),
        **({"initContainers": staged} if staged else {}),
    )


def _script(order: services.RunOrder, shape: Shape) -> dict[str, Any]:
    mounts = [*pods.work_mounts(), pods.config_mount(), {"name": "call", "mountPath": _CALL, "readOnly": True}]
    if not stages_in(order):
        mounts.append({"name": "input", "mountPath": PLACES.input, "readOnly": True})
    if order.service.mount.path:
        mounts.append({"name": "mount", "mountPath": f"/mnt/{order.service.mount.path}"})
    return pods.script(order, mounts, disk=not _is_queued(order, shape), command=["/bin/sh", "-c", _COMMAND])


def _stager(name: str, way: str, order: services.RunOrder, shape: Shape) -> dict[str, Any]:
    mounts = [*pods.work_mounts(), {"name": "notes", "mountPath": paper.NOTES}]
    mounts.append({"name": "order", "mountPath": paper.ORDER_FOLDER, "readOnly": True})
    if order.service.mount.path:
        mounts.append({"name": "mount", "mountPath": paper.MOUNT})
    disk = not _is_queued(order, shape)
    return pods.ours(name, way, shape, mounts, "256Mi", disk=disk, terminationMessagePolicy="FallbackToLogsOnError")


def _volumes(order: services.RunOrder) -> list[dict[str, Any]]:
    call = pods.secret_volume("call", order.name, {"call": "call"})
    found = [*pods.empty(order, "work", "output"), call, pods.config_volume(order.name)]
    if not stages_in(order):
        name = environment.input_name(events.interpret(order.event))
        found.append(pods.secret_volume("input", order.name, {"input": name}))
    if stages_in(order) or plans.carries(order):
        found += [pods.secret_volume("order", order.name, {"order.json": "order.json"}), *pods.empty(order, "notes")]
    if order.service.mount.path:
        found += pods.empty(order, "mount")
    return found
