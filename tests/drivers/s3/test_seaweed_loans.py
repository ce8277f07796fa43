"""The embedded store lends keys as the contract says."""

import pytest

from contracts.loans import LoansContract, bucket, loans, name  # noqa: F401 - fixtures
from hansa.drivers.s3 import OpenStore

pytest_plugins = ("real.object_store",)


@pytest.fixture
def opened(object_store: OpenStore) -> OpenStore:
    return object_store


class TestSeaweedLoans(LoansContract):
    """Against a real SeaweedFS."""
