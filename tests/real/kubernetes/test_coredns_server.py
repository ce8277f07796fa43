"""Do pods find Services by their names, and nothing beyond?"""

import asyncio

from lightkube.models.core_v1 import ServicePort, ServiceSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Service

from real.kubernetes import images
from real.kubernetes.access import Access
from real.kubernetes.fixtures import require_names
from real.kubernetes.test_cluster import pod, run_job

ASK = "for name in $*; do nslookup -type=a $name. | sed -n 's/^Address: //p;s/.*\\(NXDOMAIN\\)/\\1/p'; done"


async def test_a_pod_finds_services_by_name(kubernetes: Access, kubernetes_namespace: str) -> None:
    require_names(kubernetes)
    async with kubernetes.client() as api:
        about = ObjectMeta(name="lighthouse", namespace=kubernetes_namespace)
        made = await api.create(Service(metadata=about, spec=ServiceSpec(ports=[ServicePort(port=80)])))
    assert made.spec is not None
    host = f"lighthouse.{kubernetes_namespace}.svc"
    names = (f"{host}.cluster.local", "kubernetes.default.svc.cluster.local", "example.org")
    how, said = await run_job(kubernetes, kubernetes_namespace, pod("sh", "-c", ASK, "ask", *names))
    assert how.startswith("Complete"), said
    assert said.split() == [made.spec.clusterIP, "10.96.0.1", "NXDOMAIN"]
    # As programs ask: by the short name, through the domains that the pod is told to search.
    await asyncio.to_thread(kubernetes.import_image, images.python())
    asked = pod("python3", "-c", f"import socket; print(socket.gethostbyname({host!r}))", image=images.PYTHON)
    how, said = await run_job(kubernetes, kubernetes_namespace, asked)
    assert (how.split()[0], said) == ("Complete", made.spec.clusterIP)
