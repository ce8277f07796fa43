"""What stands beside an exposed service, where it is asked for? Pure: a way for callers that does not pass the manager,
and somebody who scales it. Both belong to what they serve, and go with it.
"""

from dataclasses import dataclass
from typing import Any, Literal, cast

from lightkube.generic_resource import create_namespaced_resource
from lightkube.resources.autoscaling_v2 import HorizontalPodAutoscaler
from lightkube.resources.networking_v1 import Ingress, NetworkPolicy

from hansa import services
from hansa.drivers.kubernetes import exposed_manifest, network_manifest
from hansa.drivers.kubernetes.pods import Shape

HTTP_ROUTE: Any = create_namespaced_resource("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes")
_USUAL_THRESHOLD = 80  # per cent of what it asks for, as in OSCAR


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """How callers reach exposed services beside the manager's own door."""

    kind: Literal["none", "ingress", "gateway"] = "none"
    domain: str = ""
    ingress_class: str = ""
    gateway: str = ""  # namespace/name
    tls: bool = False
    callers: tuple[str, ...] = ()  # namespaces and networks from which pods are reached; none: from everywhere
    private_too: bool = False  # also to services that not everybody may see, as in OSCAR

    @property
    def resource(self) -> Any:
        return Ingress if self.kind == "ingress" else HTTP_ROUTE


def host(order: services.RunOrder, routes: Routes) -> str:
    """Its name for callers; "" if it has none. Who is asked to sign in comes by the manager, which looks at that."""
    if routes.kind == "none" or not order.service.asks_nobody(private_too=routes.private_too):
        return ""
    return f"{order.service.name}.{routes.domain}"


def route(order: services.RunOrder, shape: Shape, routes: Routes, service: Any) -> Any:
    """`service` is the Service it leads to, as Kubernetes made it."""
    meta = {**_about(order, shape, service, "v1", "Service"), "name": service.metadata.name}
    named, port = host(order, routes), order.service.expose.port
    if routes.kind == "gateway":
        namespace, _, name = routes.gateway.rpartition("/")
        parent = {"name": name, **({"namespace": namespace} if namespace else {})}
        rules = [{"backendRefs": [{"name": service.metadata.name, "port": port}]}]
        return HTTP_ROUTE(metadata=meta, spec={"parentRefs": [parent], "hostnames": [named], "rules": rules})
    backend = {"service": {"name": service.metadata.name, "port": {"number": port}}}
    rule = {"host": named, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    spec = {
        "rules": [rule],
        **({"ingressClassName": routes.ingress_class} if routes.ingress_class else {}),
        **({"tls": [{"hosts": [named]}]} if routes.tls else {}),
    }
    return Ingress.from_dict({"metadata": meta, "spec": spec})


def opening(order: services.RunOrder, shape: Shape, routes: Routes, service: Any) -> NetworkPolicy:
    """Whoever makes the route reach its callers calls the pods."""
    about = service.metadata
    made = network_manifest.opening(
        about.name, about.namespace, shape.cluster, order.service.name, order.service.expose.port, routes.callers
    )
    meta = _about(order, shape, service, "v1", "Service")
    return cast(NetworkPolicy, NetworkPolicy.from_dict({**made.to_dict(), "metadata": meta}))


def scales(order: services.RunOrder) -> bool:
    return order.service.expose.max_scale > exposed_manifest.count(order)


def scaler(order: services.RunOrder, shape: Shape, deployment: Any, most: int) -> HorizontalPodAutoscaler:
    """Between `min_scale` and `most`, by the processor's use. It needs a source of metrics to do anything."""
    expose = order.service.expose
    use = {"type": "Utilization", "averageUtilization": expose.cpu_threshold or _USUAL_THRESHOLD}
    made = HorizontalPodAutoscaler.from_dict(
        {
            "metadata": _about(order, shape, deployment, "apps/v1", "Deployment"),
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment.metadata.name},
                "minReplicas": exposed_manifest.count(order),
                "maxReplicas": most,
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": use}}],
            },
        }
    )
    return cast(HorizontalPodAutoscaler, made)


def _about(order: services.RunOrder, shape: Shape, owner: Any, version: str, kind: str) -> dict[str, Any]:
    whose = {"apiVersion": version, "kind": kind, "name": owner.metadata.name, "uid": owner.metadata.uid}
    return {
        "name": owner.metadata.name,
        "namespace": owner.metadata.namespace,
        "labels": exposed_manifest.marks(order, shape),
        "ownerReferences": [{**whose, "blockOwnerDeletion": False}],
    }
