"""What may a test ask for?

    kubernetes              `Access` to a full cluster that all workers of this run share: look after your own namespace
    kubernetes_namespace    a fresh namespace in it, removed with all that is in it
    breakable_kubernetes    a `KubernetesCluster` of this test file alone, whole again before each test
    kubernetes_api          API and controllers alone, of this test file alone; for every account, on loopback

Where a cluster cannot be the test is left out, with the reason; whoever asked for one (`HANSA_SETUP_KUBERNETES=yes`)
where nothing may be missing sees it fail (`real.parts`).
"""

import asyncio
import contextlib
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import NoReturn

import pytest
from lightkube import ApiError, AsyncClient
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace, ServiceAccount

from real import parts
from real.kubernetes import coredns_server, preparation, shared
from real.kubernetes.access import Access
from real.kubernetes.cluster import KubernetesCluster, api_cluster, full_cluster

_SECONDS = 60.0


def require(*, full: bool) -> None:
    """Ends the test where such a cluster cannot be."""
    if why := preparation.hindrance(full=full):
        _leave_out("kubernetes", why)


def require_names(access: Access) -> None:
    """Ends the test where pods of that cluster do not find Services by name."""
    if why := coredns_server.hindrance(access):
        _leave_out("names-in-kubernetes", why)


@pytest.fixture(scope="session")
def kubernetes() -> Iterator[Access]:
    require(full=True)
    # The same for all workers of a run; there are none without xdist.
    with shared.joined(os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid.uuid4().hex) as access:
        yield access


@pytest.fixture
async def kubernetes_namespace(kubernetes: Access) -> AsyncIterator[str]:
    async with fresh_namespace(kubernetes) as name:
        yield name


@pytest.fixture(scope="module")
def _own_kubernetes() -> Iterator[KubernetesCluster]:
    require(full=True)
    with full_cluster() as cluster:
        yield cluster


@pytest.fixture
def breakable_kubernetes(_own_kubernetes: KubernetesCluster) -> KubernetesCluster:
    _own_kubernetes.restore()
    return _own_kubernetes


@pytest.fixture(scope="module")
def kubernetes_api() -> Iterator[KubernetesCluster]:
    require(full=False)
    with api_cluster() as cluster:
        yield cluster


def _leave_out(part: str, why: str) -> NoReturn:
    if os.environ.get("HANSA_SETUP_KUBERNETES") == "yes":
        parts.give_up(part, why)
    parts.missing.note(part, why)
    pytest.skip(f"missing part {part}: {why}")


@contextlib.asynccontextmanager
async def fresh_namespace(access: Access) -> AsyncIterator[str]:
    """One in which pods may be made. Its removal goes on while the next test runs."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    async with access.client() as api:
        await api.create(Namespace(metadata=ObjectMeta(name=name)))
        try:
            async with asyncio.timeout(_SECONDS):
                while not await _has_account(api, name):
                    await asyncio.sleep(0.05)
            yield name
        finally:
            with contextlib.suppress(ApiError):
                await api.delete(Namespace, name)


async def _has_account(api: AsyncClient, namespace: str) -> bool:
    """Pods are refused before a controller has made it."""
    try:
        await api.get(ServiceAccount, "default", namespace=namespace)
    except ApiError as error:
        if error.status.code != 404:
            raise
        return False
    return True
