"""A user's quota is the last one set."""

from hansa.store import Database
from hansa.store.quotas import QuotaStore


async def test_the_last_quota_counts(database: Database) -> None:
    store = QuotaStore(database)
    assert await store.all() == {}
    await store.put("alice@example.org", "{}")
    await store.put("alice@example.org", '{"cpu":1}')
    await store.put("bob", "{}")
    assert await store.all() == {"alice@example.org": '{"cpu":1}', "bob": "{}"}
