"""The same stories as with the embedded store, told by a manager whose objects lie in a real MinIO."""

from collections.abc import Iterator
from typing import Any

import pytest

from journeys.conftest import Person, signing_in
from journeys.waiting import eventually
from real.identity_provider import IdentityProvider
from real.manager import Manager, running_manager, trusting
from real.minio import RunningMinio, running_minio

# Longer than any test: what is seen was told by MinIO, not found by looking through a bucket.
UNASKED_SECONDS = 3600


def storing_in(minio: RunningMinio, provider: IdentityProvider) -> dict[str, Any]:
    """Settings of a manager."""
    return {
        **trusting(provider),
        "jobs.page_size": 3,
        "log.level": "debug",
        "storage.kind": "minio",
        "storage.endpoint": minio.address.endpoint,
        "storage.access_key": minio.keys.access_key,
        "storage.secret_key": minio.keys.secret_key,
        "storage.reconcile_every": UNASKED_SECONDS,
    }


@pytest.fixture(scope="session")
def manager(sign_in_provider: IdentityProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    """With a MinIO of its own: it restarts when it learns of a manager."""
    with (
        running_minio(tmp_path_factory.mktemp("minio")) as minio,
        running_manager(storing_in(minio, sign_in_provider)) as running,
    ):
        # what MinIO hears for the first time costs it a moment
        eventually(lambda: "MinIO knows where to tell of uploads" in running.log)
        yield running


@pytest.fixture(scope="session")
def person(manager: Manager, sign_in_provider: IdentityProvider) -> Person:
    """At this manager: those of the session are signed in at another one."""
    return signing_in(manager, sign_in_provider)
