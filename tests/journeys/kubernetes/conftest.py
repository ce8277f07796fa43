"""The same stories as of a manager on one machine, told by one whose engine is a real Kubernetes."""

from collections.abc import Iterator

import pytest

from journeys.conftest import Person, signing_in
from real.identity_provider import IdentityProvider
from real.kubernetes import kubernetes_manager as managers
from real.kubernetes.access import Access
from real.manager import Manager, trusting
from real.object_store import object_store_server

__all__ = ["object_store_server"]


@pytest.fixture(scope="session")
def manager(kubernetes: Access, sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    managers.bring_images(kubernetes)
    managers.reach_pods(kubernetes)
    settings = {**trusting(sign_in_provider), "jobs.page_size": 3, "log.level": "debug"}
    with managers.kubernetes_manager(kubernetes, settings) as running:
        yield running


@pytest.fixture(scope="session")
def person(manager: Manager, sign_in_provider: IdentityProvider) -> Person:
    """Not the one above: pytest keeps that for the whole session, with whichever manager was asked for first."""
    return signing_in(manager, sign_in_provider)
