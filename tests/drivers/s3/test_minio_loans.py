"""MinIO lends keys as the contract says; against a live server, where there is one."""

import asyncio
import contextlib

import pytest

from contracts.loans import LoansContract, allowed, bucket, client, loans, name, reach, tried  # noqa: F401 - fixtures
from hansa.drivers.s3 import OpenStore
from hansa.kernel.errors import Invalid
from hansa.storage import Loans, Reach

pytest_plugins = ("real.minio",)


@pytest.fixture
def opened(minio_store: OpenStore) -> OpenStore:
    return minio_store


class TestMinioLoans(LoansContract):
    """Against a real MinIO."""

    async def test_what_a_dead_manager_lent_ends(
        self,
        opened: OpenStore,
        loans: Loans,  # noqa: F811
        bucket: str,  # noqa: F811
        name: str,  # noqa: F811
    ) -> None:
        """At once only if nothing else has to live on: the server does not tell one session from another."""
        s3 = client(opened, await loans.lend(name, reach(bucket)))
        with contextlib.closing(s3):
            await loans.end_others(frozenset({"another"}))
            assert await asyncio.to_thread(lambda: tried(allowed(s3, bucket))) == list(allowed(s3, bucket))
            await loans.end_others(frozenset())
            assert await asyncio.to_thread(lambda: tried(allowed(s3, bucket))) == []


async def test_a_reach_that_no_session_can_carry_is_refused(minio_store: OpenStore) -> None:
    assert minio_store.loans is not None
    many = Reach(write=frozenset(("bucket", f"folder-{number}/") for number in range(200)))
    with pytest.raises(Invalid, match="too many"):
        await minio_store.loans.lend("job", many)
