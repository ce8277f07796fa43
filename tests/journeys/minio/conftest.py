"""The same stories as with the embedded store, told by a manager whose objects lie in a real MinIO."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from journeys.conftest import Person, signing_in
from journeys.waiting import eventually
from real.identity_provider import IdentityProvider
from real.manager import Manager, running_manager, trusting
from real.minio import running_minio

# Longer than any test: what is seen was told by MinIO, not found by looking through a bucket.
UNASKED_SECONDS = 3600


@pytest.fixture(scope="session")
def manager(sign_in_provider: IdentityProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    """With a MinIO of its own: it restarts whenever it learns of a new service."""
    folder: Path = tmp_path_factory.mktemp("minio")
    with running_minio(folder) as minio:
        settings = {
            **trusting(sign_in_provider),
            "jobs.page_size": 3,
            "log.level": "debug",
            "storage.kind": "minio",
            "storage.endpoint": minio.address.endpoint,
            "storage.access_key": minio.keys.access_key,
            "storage.secret_key": minio.keys.secret_key,
            "storage.reconcile_every": UNASKED_SECONDS,
        }
        with running_manager(settings) as running:
            # what MinIO hears for the first time costs it a moment
            eventually(lambda: "MinIO knows where to tell of uploads" in running.log)
            yield running


@pytest.fixture(scope="session")
def person(manager: Manager, sign_in_provider: IdentityProvider) -> Person:
    """At this manager: those of the session are signed in at another one."""
    return signing_in(manager, sign_in_provider)
