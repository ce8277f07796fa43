"""How does a test get a manager whose engine is a real Kubernetes?

    with kubernetes_manager(access, trusting(provider)) as running: …     # `Manager`, as of `real.manager`

The manager runs on this machine, beside the cluster: it reaches pods by a route, and they reach its store at the
machine's end of the cluster's link. Users' images are brought under the names that stories use.
"""

import asyncio
import contextlib
import secrets
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from lightkube import ApiError
from lightkube.resources.core_v1 import Namespace

from real.kubernetes import hansa_image, images
from real.kubernetes.access import Access
from real.manager import Manager, running_manager

DEBIAN = "docker.io/library/debian:latest"  # what `debian` means to Kubernetes
_SECONDS = 60.0


def bring_images(access: Access, *names: str) -> None:
    for name in names or (DEBIAN,):
        access.import_image(images.python(name))
    access.import_image(hansa_image.archive())


def reach_pods(access: Access) -> None:
    """As a manager in the cluster would; the route goes with the cluster's link."""
    node = str(urlsplit(access.server).hostname)
    number = node.split(".")[2]
    route = ["ip", "route", "replace", f"10.244.{number}.0/24", "via", node]
    subprocess.run(route, check=True, timeout=10, capture_output=True)


def node_address(access: Access) -> str:
    return str(urlsplit(access.server).hostname)


def near_end(access: Access) -> str:
    """This machine's address on the cluster's link: what pods can call."""
    return str(urlsplit(access.server).hostname).rpartition(".")[0] + ".1"


def settings_for(access: Access) -> dict[str, Any]:
    """A name of its own for each: managers of several clusters may share a Kubernetes, and so may tests."""
    mark = secrets.token_hex(3)
    return {
        "driver": "kubernetes",
        "cluster.id": f"k-{mark}",
        "cluster.services_namespace": f"svc-{mark}",
        "kubernetes.kubeconfig": str(access.kubeconfig),
        "kubernetes.image": hansa_image.NAME,
        "kubernetes.namespace": f"hansa-{mark}",
        "kubernetes.pull_policy": "IfNotPresent",
        "storage.host": near_end(access),
        "jobs.cpu": "",
        "jobs.memory": "",
    }


@contextlib.contextmanager
def kubernetes_manager(
    access: Access, settings: Mapping[str, Any] | None = None, *, database: str = ""
) -> Iterator[Manager]:
    given = {**settings_for(access), **(settings or {})}
    try:
        with running_manager(given, database=database) as running:
            yield running
    finally:
        asyncio.run(clear(access, str(given["cluster.id"])))


async def clear(access: Access, cluster: str) -> None:
    """All namespaces that were made for it, with all that is in them."""
    async with asyncio.timeout(_SECONDS), access.client() as api:
        async for one in api.list(Namespace, labels={"hansa/cluster": cluster}):
            assert one.metadata is not None
            assert one.metadata.name is not None
            with contextlib.suppress(ApiError):
                await api.delete(Namespace, one.metadata.name)
