"""Does each kind of store offer what it can, and say plainly what it cannot?"""

from pathlib import Path

import pytest

from contracts.object_store import fresh_name
from hansa.drivers.s3 import NoUserAdministration, OpenStore, open_embedded, open_minio, open_s3
from hansa.storage import Keys, StoreAddress

pytest_plugins = ("real.object_store",)


async def test_plain_s3_keeps_objects_but_makes_no_users(object_store: OpenStore) -> None:
    plain = open_s3(object_store.store.address, object_store.keys)
    bucket = fresh_name()
    try:
        await plain.store.create_bucket(bucket)
        await plain.store.put(bucket, "k", b"x")
        assert plain.uploads is None
        assert plain.notifications is None
        with pytest.raises(NoUserAdministration, match="no user administration") as caught:
            await plain.users.ensure_user(Keys("ann", "long-enough-secret"))
        assert caught.value.hint
        with pytest.raises(NoUserAdministration):
            await plain.users.grant("ann", frozenset({bucket}))
        with pytest.raises(NoUserAdministration):
            await plain.users.publish(frozenset({bucket}))
        await plain.users.grant("ann", frozenset())
        await plain.users.publish(frozenset())
        await plain.users.remove_user("ann")
    finally:
        await plain.store.delete_bucket(bucket)
        await plain.close()


async def test_the_embedded_store_offers_users_and_a_stream(tmp_path: Path) -> None:
    opened = await open_embedded(tmp_path / "store", public_endpoint="https://objects.example.org")
    try:
        await opened.store.check()
        assert opened.uploads is not None
        assert opened.embedded is not None
        assert opened.store.address.endpoint == "https://objects.example.org"
        assert opened.keys.secret_key not in repr(opened)
    finally:
        await opened.close()


async def test_minio_offers_users_and_webhooks() -> None:
    address = StoreAddress("http://127.0.0.1:1", "us-east-1", verify=True)
    opened = open_minio(address, Keys("root", "root-secret"))
    assert opened.notifications is not None
    assert opened.uploads is None
    await opened.close()
