"""What does an exposed service look like in Kubernetes? Pure: a Deployment and a Service, named as in OSCAR, and two
Secrets of each definition: what its program finds in the environment, and its folder of configuration.

A Secret never changes: another definition has others, by its digest, so pods of the old one go on as they began until
those of the new one are ready.
"""

import hashlib
from typing import Any, cast

import msgspec
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Secret, Service

from hansa import services
from hansa.drivers.kubernetes import labels, pods
from hansa.drivers.kubernetes.pods import PLACES, Shape
from hansa.drivers.runs import environment

_GRACE = 10  # seconds for calls that are under way when an instance ends
_RESTARTED = "hansa/restarted"


def name_of(service: str) -> str:
    return f"{service}-dlp"


def count(order: services.RunOrder) -> int:
    return max(order.service.expose.min_scale, 1)


def digest(order: services.RunOrder, shape: Shape) -> str:
    """Another one whenever its pods have to be others."""
    told = msgspec.json.encode(
        (
            environment.service_variables(order, PLACES, shape.node),
            order.service.script,
            environment.definition_text(order.service),
        )
    )
    return hashlib.sha256(told).hexdigest()[:10]


def secrets(order: services.RunOrder, namespace: str, shape: Shape) -> list[Secret]:
    variables = environment.service_variables(order, PLACES, shape.node)
    data = {"env": {name: text.encode() for name, text in variables.items()}, "config": pods.config(order)}
    marked = marks(order, shape)
    return [pods.secret(_secret(order, shape, kind), namespace, marked, body) for kind, body in data.items()]


def deployment(
    order: services.RunOrder, namespace: str, shape: Shape, *, replicas: int, restarted: str = ""
) -> Deployment:
    marked = marks(order, shape)
    selected = {name: marked[name] for name in (labels.EXPOSED, labels.CLUSTER)}
    made = Deployment.from_dict(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name_of(order.service.name), "namespace": namespace, "labels": marked},
            "spec": {
                "replicas": replicas,
                "revisionHistoryLimit": 1,
                "selector": {"matchLabels": selected},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
                "template": {
                    "metadata": {"labels": marked, "annotations": {_RESTARTED: restarted}},
                    "spec": _pod(order, shape),
                },
            },
        }
    )
    return cast(Deployment, made)


def service(order: services.RunOrder, namespace: str, shape: Shape) -> Service:
    """Where other pods of the cluster find it."""
    marked, port = marks(order, shape), order.service.expose.port
    made = Service.from_dict(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": f"{order.service.name}-svc", "namespace": namespace, "labels": marked},
            "spec": {
                "selector": {name: marked[name] for name in (labels.EXPOSED, labels.CLUSTER)},
                "ports": [{"name": "http", "port": port, "targetPort": port, "protocol": "TCP"}],
            },
        }
    )
    return cast(Service, made)


def marks(order: services.RunOrder, shape: Shape) -> dict[str, str]:
    return pods.marks(order, shape, **{labels.EXPOSED: order.service.name})


def _secret(order: services.RunOrder, shape: Shape, kind: str) -> str:
    return f"{order.service.name}-{kind}-{digest(order, shape)}"


def _pod(order: services.RunOrder, shape: Shape) -> dict[str, Any]:
    made = pods.body(
        order,
        shape,
        terminationGracePeriodSeconds=_GRACE,
        containers=[_program(order, shape)],
        volumes=[*pods.empty(order, "work"), pods.config_volume(_secret(order, shape, "config"))],
    )
    # A program that nobody lets be root may still listen where its users expect it.
    made["securityContext"]["sysctls"] = [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]
    return made


def _program(order: services.RunOrder, shape: Shape) -> dict[str, Any]:
    expose = order.service.expose
    asked = {"httpGet": {"path": expose.health_path, "port": expose.port}}
    listens = {"tcpSocket": {"port": expose.port}}
    own: dict[str, Any] = {} if expose.default_command else {"command": ["/bin/sh", f"{PLACES.config}/script.sh"]}
    return pods.script(
        order,
        [{"name": "work", "mountPath": PLACES.job}, pods.config_mount()],
        envFrom=[{"secretRef": {"name": _secret(order, shape, "env")}}],
        ports=[{"containerPort": expose.port}],
        readinessProbe={
            **(asked if expose.health_path else listens),
            "periodSeconds": 1,
            "timeoutSeconds": 2,
            "failureThreshold": 2,
        },
        **own,
    )
