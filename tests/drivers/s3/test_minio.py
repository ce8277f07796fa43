"""Does the MinIO driver keep people apart and have uploads posted to us? Against a live server, where there
is one."""

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest
from minio.notificationconfig import NotificationConfig, PrefixFilterRule

from contracts.direct_use import DirectUseContract
from contracts.object_store import StoreUsersContract, fresh_name
from hansa.drivers.s3 import OpenStore, StoreUnreachable, open_minio
from hansa.drivers.s3.errors import ManagerRefused
from hansa.drivers.s3.minio import MinioConnection, MinioNotifications
from hansa.kernel.errors import Invalid
from hansa.storage import Keys, Notifications, ObjectStore, StoreAddress

if TYPE_CHECKING:  # the plug-in below must be the first to import it
    from real.minio import RunningMinio

pytest_plugins = ("real.minio",)

PATIENCE = 15.0
NOWHERE = StoreAddress("http://127.0.0.1:1", "us-east-1", verify=True)


class TestMinio(DirectUseContract, StoreUsersContract):
    @pytest.fixture
    def opened(self, minio_store: OpenStore) -> OpenStore:
        return minio_store


@dataclass
class Receiver:
    """A manager's door, as far as MinIO sees it."""

    url: str = ""
    calls: "asyncio.Queue[tuple[str, str, dict[str, Any]]]" = field(default_factory=asyncio.Queue)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := (await reader.readline()).decode().split():
                headers: dict[str, str] = {}
                while line := (await reader.readline()).decode().strip():
                    name, _, value = line.partition(":")
                    headers[name.lower()] = value.strip()
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                if body:
                    await self.calls.put((request[1], headers.get("authorization", ""), json.loads(body)))
                writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
        finally:
            writer.close()

    async def told_of(self, store: ObjectStore, bucket: str, key: str) -> tuple[str, str, dict[str, Any]]:
        """Uploads until told: without a queue of its own, MinIO may drop what happens right after its restart."""
        for _ in range(5):
            await store.put(bucket, key, b"x")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE / 5):
                    call = await self.calls.get()
                assert call[2]["Key"] == f"{bucket}/{key}"
                return call
        raise AssertionError(f"never told of {key}")


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.answer, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield receiver
    server.close()


@pytest.fixture
def notifications(minio_store: OpenStore) -> Notifications:
    assert minio_store.notifications is not None
    return minio_store.notifications


@pytest.fixture
async def bucket(minio_store: OpenStore) -> AsyncIterator[str]:
    name = fresh_name()
    await minio_store.store.create_bucket(name)
    yield name
    await minio_store.store.delete_bucket(name)


async def uptime(server: "RunningMinio") -> int:
    """Seconds since MinIO was started or restarted."""
    connection = MinioConnection(server.address, server.keys)
    try:
        info = json.loads(await connection.call("read MinIO's state", connection.admin.info))
    finally:
        await connection.close()
    return int(info["servers"][0].get("uptime", 0))  # left out while it is zero


def fresh_caller() -> str:
    return f"hansa-{secrets.token_hex(4)}"


async def test_uploads_to_a_bucket_are_posted(
    minio_server: "RunningMinio",
    minio_store: OpenStore,
    notifications: Notifications,
    bucket: str,
    receiver: Receiver,
) -> None:
    caller, token, url = fresh_caller(), secrets.token_hex(32), f"{receiver.url}/told"
    await notifications.announce(caller, url, token)
    assert await notifications.listen(caller, bucket, True)
    path, authorization, event = await receiver.told_of(minio_store.store, bucket, "in/a b+ñ.txt")
    assert (path, authorization) == ("/told", f"Bearer {token}")
    assert event["Key"] == f"{bucket}/in/a b+ñ.txt"
    assert event["Records"][0]["requestParameters"]["principalId"] == minio_store.keys.access_key

    async with asyncio.timeout(PATIENCE):
        while (up := await uptime(minio_server)) < 2:
            await asyncio.sleep(0.1)
    await notifications.announce(caller, url, token)
    assert not await notifications.listen(caller, bucket, True)
    assert await notifications.listen(caller, bucket, False)
    assert await notifications.listen(caller, bucket, True)
    assert await uptime(minio_server) >= up  # neither the same again nor another order costs a restart
    await receiver.told_of(minio_store.store, bucket, "more/k")

    renewed = secrets.token_hex(32)  # a new token is used from now on
    await notifications.announce(caller, url, renewed)
    _, authorization, _ = await receiver.told_of(minio_store.store, bucket, "in/l")
    assert authorization == f"Bearer {renewed}"

    assert await notifications.listen(caller, bucket, False)
    await minio_store.store.put(bucket, "in/late", b"x")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await receiver.calls.get()


async def test_managers_of_one_store_do_not_disturb_each_other(
    minio_store: OpenStore, notifications: Notifications, bucket: str, receiver: Receiver
) -> None:
    callers = [fresh_caller() for _ in range(2)]
    for caller in callers:
        await notifications.announce(caller, f"{receiver.url}/{caller}", "token")
        await notifications.listen(caller, bucket, True)
    await notifications.listen(callers[0], bucket, False)
    path, _, _ = await receiver.told_of(minio_store.store, bucket, "in/k")
    assert path == f"/{callers[1]}"
    await notifications.listen(callers[1], bucket, False)


async def test_orders_of_those_who_came_later_stay(
    minio_server: "RunningMinio", minio_store: OpenStore, notifications: Notifications, bucket: str, receiver: Receiver
) -> None:
    """An operator may have notifications of their own in a bucket that services use, whatever we knew of before."""
    first, later = fresh_caller(), fresh_caller()
    await notifications.announce(first, f"{receiver.url}/{first}", "token")
    other = open_minio(minio_server.address, minio_server.keys)
    stranger = open_minio(minio_server.address, minio_server.keys)  # who was never announced
    try:
        assert other.notifications is not None
        assert stranger.notifications is not None
        await other.notifications.announce(later, f"{receiver.url}/{later}", "token")
        await other.notifications.listen(later, bucket, True)
        assert await notifications.listen(first, bucket, True)
        assert not await stranger.notifications.listen(fresh_caller(), bucket, False)
        assert await notifications.listen(first, bucket, False)
        assert not await other.notifications.listen(later, bucket, True), "it has stayed"
        path, _, _ = await receiver.told_of(minio_store.store, bucket, "in/k")
        assert path == f"/{later}"
        await other.notifications.listen(later, bucket, False)
    finally:
        await other.close()
        await stranger.close()


async def test_what_a_target_left_that_is_gone_hinders_nobody(
    minio_server: "RunningMinio", minio_store: OpenStore, notifications: Notifications, bucket: str, receiver: Receiver
) -> None:
    gone, here = fresh_caller(), fresh_caller()
    await notifications.announce(gone, f"{receiver.url}/{gone}", "token")
    await notifications.listen(gone, bucket, True)
    connection = MinioConnection(minio_server.address, minio_server.keys)
    await connection.call("forget", lambda: connection.admin.config_reset("notify_webhook", gone))
    await connection.close()
    await notifications.announce(here, f"{receiver.url}/{here}", "token")
    await notifications.listen(here, bucket, True)
    path, _, _ = await receiver.told_of(minio_store.store, bucket, "in/k")
    assert path == f"/{here}"
    await notifications.listen(here, bucket, False)


async def test_a_manager_that_does_not_listen_is_temporary(notifications: Notifications, bucket: str) -> None:
    with pytest.raises(StoreUnreachable) as caught:
        await notifications.announce("nobody", "http://127.0.0.1:1/told", "token")
    assert "reach the manager" in caught.value.hint
    assert "http://127.0.0.1:1/told" in caught.value.message
    assert "token" not in str(caught.value)
    with pytest.raises(StoreUnreachable):
        await notifications.listen("nobody", bucket, True)


async def test_of_a_missing_bucket_there_is_nothing_to_tell(notifications: Notifications, receiver: Receiver) -> None:
    caller = fresh_caller()
    await notifications.announce(caller, f"{receiver.url}/told", "token")
    for wanted in (True, False):
        assert not await notifications.listen(caller, fresh_name(), wanted)


async def test_an_order_of_an_earlier_release_is_replaced(
    minio_server: "RunningMinio", minio_store: OpenStore, notifications: Notifications, bucket: str, receiver: Receiver
) -> None:
    """Those named folders, which MinIO takes for patterns."""
    caller = fresh_caller()
    await notifications.announce(caller, f"{receiver.url}/told", "token")
    await notifications.listen(caller, bucket, True)
    connection = MinioConnection(minio_server.address, minio_server.keys)

    def rewrite() -> None:
        [order] = connection.buckets.get_bucket_notification(bucket).queue_config_list
        folders = replace(order, prefix_filter_rule=PrefixFilterRule("in*a*"))
        connection.buckets.set_bucket_notification(bucket, NotificationConfig(queue_config_list=[folders]))

    await connection.call("rewrite", rewrite)
    await connection.close()
    assert await notifications.listen(caller, bucket, True)
    await receiver.told_of(minio_store.store, bucket, "elsewhere")
    await notifications.listen(caller, bucket, False)


@pytest.mark.parametrize("published", [False, True])
async def test_nobody_takes_the_name_of_somebody_who_comes_later(
    minio_server: "RunningMinio", minio_store: OpenStore, bucket: str, published: bool
) -> None:
    """MinIO lets its users choose names of service accounts, which then stand in the way of a user of that name."""
    keys = Keys.of_user(f"mallory-{secrets.token_hex(4)}@test", "mallorys-own-secret")
    await minio_store.users.ensure_user(keys)
    if published:
        await minio_store.users.publish(frozenset({bucket}))
    else:
        await minio_store.users.grant(keys.access_key, frozenset({bucket}))
    connection = MinioConnection(minio_server.address, keys)
    name = f"q-{secrets.token_hex(4)}@t"
    try:
        with pytest.raises(ManagerRefused):  # that is the translation for whoever administrates
            await connection.call(
                "squat", lambda: connection.admin.add_service_account(access_key=name, secret_key="chosen-by-mallory")
            )
        await minio_store.users.ensure_user(Keys(name, "somebody-elses-secret"))
    finally:
        await connection.close()
        await minio_store.users.publish(frozenset())
        for user in (keys.access_key, name):
            await minio_store.users.remove_user(user)


@pytest.mark.parametrize(
    ("caller", "url", "token"),
    [
        ("a b", "http://h/", "t"),
        ("svc:x", "http://h/", "t"),
        ("svc", "http://h/ enable=off", "t"),
        ("svc", "http://h/", "t\nnotify_webhook:other endpoint=http://evil/"),
    ],
)
async def test_nothing_slips_into_the_configuration(caller: str, url: str, token: str) -> None:
    opened = open_minio(NOWHERE, Keys("root", "root-secret"))
    try:
        assert isinstance(opened.notifications, MinioNotifications)
        with pytest.raises(Invalid):
            await opened.notifications.announce(caller, url, token)
    finally:
        await opened.close()


async def test_a_server_that_is_away_is_temporary() -> None:
    opened = open_minio(NOWHERE, Keys("root", "root-secret"))
    try:
        with pytest.raises(StoreUnreachable):
            await opened.users.publish(frozenset())
    finally:
        await opened.close()


async def test_wrong_administrator_keys_are_refused(minio_server: "RunningMinio") -> None:
    opened = open_minio(minio_server.address, Keys("nobody", "not-the-secret"))
    try:
        with pytest.raises(ManagerRefused):
            await opened.users.publish(frozenset())
    finally:
        await opened.close()
