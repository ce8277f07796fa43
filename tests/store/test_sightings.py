"""Is what members show remembered over restarts, and forgotten with the member?"""

from hansa.services import Shown
from hansa.store import Database, SightingStore

WAYS = Shown("f1", {"script": "aa", "expose": "bb"})


async def loaded(database: Database) -> SightingStore:
    store = SightingStore(database)
    await store.load()
    return store


async def test_it_survives_a_restart_and_the_newest_counts(database: Database) -> None:
    store = await loaded(database)
    assert store.shown("gray", "visby/gray-v") is None
    await store.keep("gray", "visby/gray-v", Shown("f0", {}))
    await store.keep("gray", "visby/gray-v", WAYS)
    odd = f"{'ü' * 1000}\0/gray-v"  # a cluster's id is the user's choice
    await store.keep("gray", odd, WAYS)
    again = await loaded(database)
    assert (again.shown("gray", "visby/gray-v"), again.shown("gray", odd)) == (WAYS, WAYS)
    await again.keep("gray", odd, None)
    await again.keep("gray", "riga/gray-r", None)
    last = await loaded(database)
    assert (last.shown("gray", "visby/gray-v"), last.shown("gray", odd)) == (WAYS, None)


async def test_what_is_no_member_any_more_is_forgotten(database: Database) -> None:
    store = await loaded(database)
    for service in ("gray", "blue"):
        await store.keep(service, "visby/v", WAYS)
        store.note(service, "visby/v", 3.0)
    await store.forget_others({("gray", "visby/v")})
    assert (store.shown("gray", "visby/v"), store.last("gray", "visby/v")) == (WAYS, 3.0)
    assert (store.shown("blue", "visby/v"), store.last("blue", "visby/v")) == (None, None)
    again = await loaded(database)
    assert (again.shown("gray", "visby/v"), again.shown("blue", "visby/v")) == (WAYS, None)
    assert again.last("gray", "visby/v") is None  # a restart looks anew
