"""What does a worker of a synchronous service look like in Kubernetes? Pure: a Secret of each definition, and pods.

The user's container waits at a pipe, our own beside it takes calls: see `stager.worker`.
"""

import hashlib
from typing import Any, cast

import msgspec
from lightkube.resources.core_v1 import Pod, Secret

from hansa import services
from hansa.drivers.kubernetes import labels, pods
from hansa.drivers.kubernetes.pods import PLACES, Shape
from hansa.drivers.kubernetes.stager import calls, paper
from hansa.drivers.runs import environment
from hansa.services import events

_GRACE = 2
_COMMAND = f"""
while read -r go < {calls.GO}; do
  ( . {calls.CALL}; exec /bin/sh {PLACES.config}/script.sh ) > {calls.OUT} 2>&1 < /dev/null
  echo $? > {calls.END}
done
"""


def digest(order: services.RunOrder, shape: Shape) -> str:
    """The same for all calls a worker may answer: only name, event and time differ from call to call."""
    told = msgspec.json.encode(
        (
            environment.service_variables(order, PLACES, shape.node),
            order.service.script,
            environment.definition_text(order.service),
            order.cpu,
            order.memory,
            order.disk,
        )
    )
    return hashlib.sha256(told).hexdigest()[:10]


def variables(order: services.RunOrder, shape: Shape) -> dict[str, str]:
    given = events.interpret(order.event)
    return environment.service_variables(order, PLACES, shape.node) | environment.call_variables(order, given, PLACES)


def secret(order: services.RunOrder, name: str, namespace: str, shape: Shape, token: str) -> Secret:
    data = {
        **pods.config(order),
        "token": token.encode(),
    }
    return pods.secret(name, namespace, _marks(order, shape, name), data)


def pod(order: services.RunOrder, name: str, namespace: str, shape: Shape, owner: Secret) -> Pod:
    made = Pod.from_dict(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": _marks(order, shape, name),
                "ownerReferences": pods.owned_by(owner),
            },
            "spec": _body(order, name, shape),
        }
    )
    return cast(Pod, made)


def _marks(order: services.RunOrder, shape: Shape, name: str) -> dict[str, str]:
    return pods.marks(order, shape, **{labels.WORKER: name})


def _body(order: services.RunOrder, name: str, shape: Shape) -> dict[str, Any]:
    mount = order.service.mount.path
    shared = [*pods.work_mounts(), {"name": "turn", "mountPath": calls.TURN}]
    seen = [{"name": "mount", "mountPath": f"/mnt/{mount}"}] if mount else []
    filled = [{"name": "mount", "mountPath": paper.MOUNT}] if mount else []
    door = pods.ours(
        "calls",
        "serve",
        shape,
        [*shared, *filled, {"name": "order", "mountPath": paper.ORDER_FOLDER, "readOnly": True}],
        "512Mi",
        restartPolicy="Always",
        startupProbe={"httpGet": {"path": "/", "port": calls.PORT}, "periodSeconds": 1, "failureThreshold": 60},
    )
    return pods.body(
        order,
        shape,
        restartPolicy="Always",
        terminationGracePeriodSeconds=_GRACE,
        initContainers=[door],
        containers=[pods.script(order, [*shared, *seen, pods.config_mount()], command=["/bin/sh", "-c", _COMMAND])],
        volumes=[
            *pods.empty(order, "work", "output", "turn", *(["mount"] if mount else [])),
            pods.config_volume(name),
            pods.secret_volume("order", name, {"token": "token"}),
        ],
    )
