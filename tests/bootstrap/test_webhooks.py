"""Is MinIO told which buckets to tell of, whatever is wrong with some of them?

A real MinIO is in `journeys/minio`; here one says what a test tells it to."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from hansa.bootstrap.webhooks import Webhook
from hansa.kernel.errors import Conflict, Temporary
from hansa.services import Record, Service, StorageIO
from hansa.storage import Keys


class Minio:
    """The `Notifications` of the scene."""

    def __init__(self) -> None:
        self.orders: set[str] = set()
        self.stubborn: dict[str, Exception] = {}
        self.hangs = False
        self.rounds = 0

    async def announce(self, caller: str, url: str, token: str) -> bool:
        self.rounds += 1
        return False

    async def listen(self, caller: str, bucket: str, wanted: bool) -> bool:
        if self.hangs:
            await asyncio.Event().wait()
        if bucket in self.stubborn:
            raise self.stubborn[bucket]
        news = wanted != (bucket in self.orders)
        (self.orders.add if wanted else self.orders.discard)(bucket)
        return news

    async def close(self) -> None: ...


class Known:
    """The services of the scene, as far as anybody asks."""

    def __init__(self, *buckets: str) -> None:
        self.records = [record(bucket) for bucket in buckets]

    def all(self) -> list[Record]:
        return self.records


def record(bucket: str) -> Record:
    place = StorageIO(storage_provider="minio.default", path=f"{bucket}/in")
    return Record(Service(name=f"of-{bucket}", input=(place,)), 1, "ready", False, (), 1.0, 1.0)


@pytest.fixture
def minio() -> Minio:
    return Minio()


@pytest.fixture
def known() -> Known:
    return Known("a", "b", "c")


@pytest.fixture
def webhook(minio: Minio, known: Known) -> Webhook:
    return Webhook(minio, "lubeck", "http://here", Keys("root", "secret"), known, patience=0.05)  # type: ignore[arg-type]


@asynccontextmanager
async def working(webhook: Webhook, on_gap: Callable[[], None] = lambda: None) -> AsyncIterator[None]:
    task = asyncio.create_task(webhook.work(on_gap))
    try:
        async with asyncio.timeout(30):
            yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_a_bucket_that_minio_refuses_keeps_no_other_from_being_told_of(webhook: Webhook, minio: Minio) -> None:
    minio.stubborn["a"] = Conflict("MalformedXML")
    gaps: list[bool] = []
    async with working(webhook, lambda: gaps.append(True)):
        while minio.orders != {"b", "c"}:
            await asyncio.sleep(0.01)
    assert len(gaps) == 3, "one at the start, for what came before, and one for each order that was news"


async def test_what_came_before_the_manager_is_looked_for(webhook: Webhook, minio: Minio) -> None:
    minio.orders = {"a", "b", "c"}
    looked = asyncio.Event()
    async with working(webhook, looked.set):
        await looked.wait()
    looked.clear()
    async with working(webhook, looked.set):  # begun again, as after trouble: large folders are not listed for that
        rounds = minio.rounds
        while minio.rounds == rounds:
            await asyncio.sleep(0.01)
    assert not looked.is_set()


async def test_a_minio_that_does_not_answer_is_told_later(webhook: Webhook, minio: Minio, known: Known) -> None:
    """Whoever writes a service is not kept waiting for it."""
    minio.hangs = True
    await webhook.refresh(["a"])
    minio.hangs = False
    minio.stubborn["b"] = Temporary("away")
    await webhook.refresh(["b", "c"])
    minio.stubborn.clear()
    async with working(webhook):
        while minio.orders != {"a", "b", "c"}:
            await asyncio.sleep(0.01)
        known.records = known.records[1:]
        await webhook.refresh(["a"])
        assert minio.orders == {"b", "c"}
        minio.stubborn["c"] = Temporary("away")
        rounds = minio.rounds
        await webhook.refresh(["c"])
        while minio.rounds == rounds:  # at once, not in a minute
            await asyncio.sleep(0.01)
