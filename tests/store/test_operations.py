"""Is an operation over several clusters remembered exactly, moved on only from the state it is in, and its credentials
kept no longer than needed?"""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from hansa.identity import Vault
from hansa.services import Operation, Touched
from hansa.store import Database, OperationStore
from hansa.store.operations import commit_operation
from hansa.store.tables import operations as table

BEFORE = {"name": "gray-v", "script": "echo ñ\n", "annotations": {"mine": "yes"}, "memory": None}
KEPT = {"refresh_token": "r3fresh", "caller": "Bearer s3cret"}


def operation(ident: str = "op-1", **changes: Any) -> Operation:
    base: dict[str, Any] = {
        "id": ident,
        "kind": "create",
        "subject": "gray",
        "owner": "alice",
        "state": "applying",
        "plan": (Touched("visby", "http://v", "gray-v", None), Touched("riga", "http://r", "gray-r", BEFORE)),
        "kept": KEPT,
        "created": 100.0,
        "updated": 100.0,
    }
    return Operation(**{**base, **changes})


@pytest.fixture
def store(database: Database) -> OperationStore:
    return OperationStore(database, Vault([Vault.new_key()]))


async def test_it_comes_back_as_it_was(store: OperationStore) -> None:
    await store.add(operation())
    assert await store.get("op-1") == operation()
    assert await store.get("op-2") is None


async def test_credentials_are_sealed_and_go_when_it_ends(store: OperationStore, database: Database) -> None:
    async def raw() -> str:
        return await database.read(lambda c: str(c.execute(sa.select(table)).mappings().all()))

    await store.add(operation())
    assert "r3fresh" not in await raw()
    assert "s3cret" not in await raw()
    assert await store.save(operation(state="undone", kept={}), expected="applying")
    ended = await store.get("op-1")
    assert ended is not None
    assert ended.kept == {}
    assert "sealed': b''" in await raw()


@pytest.mark.parametrize("state", ["applying", "committed", "undoing", "undone"])
@pytest.mark.parametrize("expected", ["applying", "undoing"])
async def test_it_moves_on_only_from_the_expected_state(store: OperationStore, state: Any, expected: Any) -> None:
    await store.add(operation(state=state))
    changed = operation(state="undone", plan=(), updated=200.0)
    assert await store.save(changed, expected=expected) == (state == expected)
    kept = await store.get("op-1")
    assert kept is not None
    assert kept.updated == (200.0 if state == expected else 100.0)
    assert bool(kept.plan) == (state != expected)


@pytest.mark.parametrize("state", ["applying", "committed", "undoing", "undone"])
async def test_only_what_is_being_applied_is_committed(store: OperationStore, database: Database, state: Any) -> None:
    await store.add(operation(state=state))
    done = await database.write(lambda c: commit_operation(c, "op-1", 300.0))
    assert done == (state == "applying")
    kept = await store.get("op-1")
    assert kept is not None
    assert kept.state == ("committed" if state == "applying" else state)
    assert (kept.kept == {}) == (state == "applying")
    assert not await database.write(lambda c: commit_operation(c, "op-9", 300.0))


async def test_undo_and_commit_at_once_have_one_winner(store: OperationStore, database: Database) -> None:
    for number in range(10):
        fresh = operation(f"op-{number}")
        await store.add(fresh)
        undone, committed = await asyncio.gather(
            store.save(replace(fresh, state="undoing"), expected="applying"),
            database.write(lambda c, ident=fresh.id: commit_operation(c, ident, 300.0)),  # type: ignore[misc]
        )
        assert undone != committed


async def test_open_ones_are_found_and_a_services_own_newest_first(store: OperationStore) -> None:
    for number, state in enumerate(["applying", "committed", "undoing", "undone"]):
        await store.add(operation(f"op-{number}", state=state, created=float(number), subject="ab"[number % 2]))
    assert {one.id for one in await store.open()} == {"op-0", "op-2"}
    assert [one.id for one in await store.of("a")] == ["op-2", "op-0"]
    assert [one.id for one in await store.of("a", most=1)] == ["op-2"]


def test_a_member_noted_again_replaces_the_earlier_note() -> None:
    noted = operation().with_member(Touched("visby", "http://v", "gray-v", BEFORE))
    assert [(one.key, one.before is None) for one in noted.plan] == [("riga/gray-r", False), ("visby/gray-v", False)]
