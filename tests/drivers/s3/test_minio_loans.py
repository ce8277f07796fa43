"""MinIO lends keys as the contract says; against a live server, where there is one."""

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from contracts.loans import LoansContract, allowed, bucket, client, loans, name, reach, tried  # noqa: F401 - fixtures
from hansa.drivers.s3 import OpenStore, open_minio
from hansa.drivers.s3.minio import MinioConnection
from hansa.kernel.errors import Invalid, Temporary
from hansa.storage import Keys, Loans, Reach

if TYPE_CHECKING:  # the plug-in below must be the first to import it
    from real.minio import RunningMinio

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


async def test_keys_are_lent_again_after_somebody_removed_the_lender(
    minio_server: "RunningMinio",
    minio_store: OpenStore,
    bucket: str,  # noqa: F811
    name: str,  # noqa: F811
) -> None:
    """By hand, or by bringing MinIO back from a copy that does not have it."""
    assert minio_store.loans is not None
    await minio_store.loans.lend(name, reach(bucket))
    connection = MinioConnection(minio_server.address, minio_server.keys)
    await connection.call("remove", lambda: connection.admin.user_remove("hansa-loans"))
    await connection.close()
    with contextlib.closing(client(minio_store, await minio_store.loans.lend(name, reach(bucket)))) as s3:
        assert await asyncio.to_thread(lambda: tried(allowed(s3, bucket))) == list(allowed(s3, bucket))


async def test_a_store_that_refuses_the_manager_is_asked_again_later(minio_server: "RunningMinio") -> None:
    """Its administrator's password was changed: that is nothing a job could help."""
    opened = open_minio(minio_server.address, Keys(minio_server.keys.access_key, "changed-meanwhile"))
    assert opened.loans is not None
    try:
        with pytest.raises(Temporary):
            await opened.loans.lend("job", Reach(read=frozenset({("bucket", "in/x")})))
        with pytest.raises(Temporary):
            await opened.loans.end("job")
    finally:
        await opened.close()
