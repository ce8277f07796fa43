"""What does a worker of a synchronous service look like in Kubernetes? Pure: a Secret of each definition, and pods.

The user's container waits at a pipe, our own beside it takes calls: see `stager.worker`.
"""

import hashlib
from typing import Any, cast

import msgspec
from lightkube.resources.core_v1 import Pod, Secret

from hansa import services
from hansa.drivers.kubernetes import labels, pods
from hansa.drivers.kubernetes.pods import PLACES, SCRIPT, Shape
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
_CONFIG = {"function_config.yaml": "function_config.yaml", "script.sh": "script.sh"}


def digest(order: services.RunOrder, shape: Shape) -> str:
    """The same for all calls a worker may answer: only name, event and time differ from call to call."""
    told = msgspec.json.encode(
        (
            environment.service_variables(order, PLACES, shape.node),
            order.service.script,
            environment.definition_text(order.service),
            {name: dict(config) for name, config in order.providers.items()},
            order.cpu,
            order.memory,
        )
    )
    return hashlib.sha256(told).hexdigest()[:10]


def variables(order: services.RunOrder, shape: Shape) -> dict[str, str]:
    given = events.interpret(order.event)
    return environment.service_variables(order, PLACES, shape.node) | environment.call_variables(order, given, PLACES)


def secret(order: services.RunOrder, name: str, namespace: str, shape: Shape, token: str) -> Secret:
    data = {
        "script.sh": order.service.script.encode(),
        "function_config.yaml": environment.definition_text(order.service).encode(),
        "order.json": msgspec.json.encode(paper.Paper.of(order, paper.Links())),
        "token": token.encode(),
    }
    return pods.secret(name, namespace, _marks(order, shape, name), data)


def pod(order: services.RunOrder, name: str, namespace: str, shape: Shape, owner: Secret) -> Pod:
    """Its Secret owns it, as with jobs."""
    meta = owner.metadata
    assert meta is not None
    made = Pod.from_dict(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": _marks(order, shape, name),
                "ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": meta.name, "uid": meta.uid}],
            },
            "spec": _body(order, name, shape),
        }
    )
    return cast(Pod, made)


def _marks(order: services.RunOrder, shape: Shape, name: str) -> dict[str, str]:
    return pods.marks(order, shape, **{labels.WORKER: name})


def _body(order: services.RunOrder, name: str, shape: Shape) -> dict[str, Any]:
    mount = order.service.mount.path
    shared = [
        {"name": "work", "mountPath": PLACES.job},
        {"name": "output", "mountPath": PLACES.output},
        {"name": "turn", "mountPath": calls.TURN},
    ]
    script = {
        "name": SCRIPT,
        "image": order.service.image,
        "command": ["/bin/sh", "-c", _COMMAND],
        "workingDir": PLACES.job,
        "resources": pods.resources(order),
        "securityContext": pods.RESTRICTED,
        "volumeMounts": [
            *shared,
            {"name": "config", "mountPath": PLACES.config, "readOnly": True},
            *([{"name": "mount", "mountPath": f"/mnt/{mount}"}] if mount else []),
        ],
    }
    door = {
        "name": "calls",
        "image": shape.stager_image,
        "command": ["python3", "-m", "hansa.drivers.kubernetes.stager", "serve"],
        "restartPolicy": "Always",
        "startupProbe": {"httpGet": {"path": "/", "port": calls.PORT}, "periodSeconds": 1, "failureThreshold": 60},
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}},
        "securityContext": {**pods.RESTRICTED, "readOnlyRootFilesystem": True},
        "volumeMounts": [
            *shared,
            {"name": "order", "mountPath": paper.ORDER_FOLDER, "readOnly": True},
            *([{"name": "mount", "mountPath": paper.MOUNT}] if mount else []),
        ],
    }
    return pods.body(
        order,
        shape,
        restartPolicy="Always",
        terminationGracePeriodSeconds=_GRACE,
        initContainers=[door],
        containers=[script],
        volumes=[
            *({"name": one, "emptyDir": {}} for one in ("work", "output", "turn", *(["mount"] if mount else []))),
            pods.secret_volume("config", name, _CONFIG),
            pods.secret_volume("order", name, {"order.json": "order.json", "token": "token"}),
        ],
    )
