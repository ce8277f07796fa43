"""A namespace of a real cluster in which the chart can be installed."""

from collections.abc import AsyncIterator

import pytest

from deploy.kubernetes import installation
from deploy.kubernetes.installation import Installation
from real.kubernetes.access import Access
from real.kubernetes.helm_client import Helm
from real.object_store import object_store_server

__all__ = ["object_store_server"]


@pytest.fixture(scope="session")
def harbour(helm: Helm, kubernetes: Access) -> Access:
    """Where our images are known, and pods can be reached."""
    installation.bring_images(kubernetes)
    return kubernetes


@pytest.fixture
async def release(helm: Helm, harbour: Access, kubernetes_namespace: str) -> AsyncIterator[Installation]:
    async with installation.installing(helm, harbour, kubernetes_namespace) as made:
        yield made


@pytest.fixture
async def volume(harbour: Access) -> AsyncIterator[str]:
    async with installation.volume(harbour) as name:
        yield name
