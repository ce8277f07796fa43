"""Is an operation over several clusters remembered exactly, moved on only from the state it is in, and its credentials
kept no longer than needed?"""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from hansa.identity import Vault
from hansa.services import Burden, Operation, Outline, Touched
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
        "plan": (Touched("visby", "http://v", "gray-v", False), Touched("riga", "http://r", "gray-r", True)),
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
    assert await store.save(operation("op-0", subject="a", created=0.0, updated=900.0), expected="applying")
    longest_untouched = [Outline("op-2", "undoing", 2.0, 100.0), Outline("op-0", "applying", 0.0, 900.0)]
    assert await store.open() == longest_untouched
    assert [one.id for one in await store.of("a")] == ["op-2", "op-0"]
    assert [one.id for one in await store.of("a", most=1)] == ["op-2"]


def test_a_member_noted_again_replaces_the_earlier_note() -> None:
    noted = operation().with_member(Touched("visby", "http://v", "gray-v", True))
    assert [(one.key, one.existed) for one in noted.plan] == [("riga/gray-r", True), ("visby/gray-v", True)]


WRITTEN = json.dumps(BEFORE).encode()


async def kept(store: OperationStore) -> list[bool]:
    """Of which members of the operation it is known what was there."""
    return [await store.before("op-1", member) == BEFORE for member in ("riga/gray-r", "visby/gray-v")]


async def test_what_was_at_members_is_kept_exactly_while_it_is_open(store: OperationStore) -> None:
    await store.add(operation())
    assert await store.save(operation(), expected="applying", befores={"riga/gray-r": b"{}"})
    assert await store.save(operation(), expected="applying", befores={"riga/gray-r": WRITTEN})
    assert await store.save(operation(state="undoing"), expected="applying")
    assert await kept(store) == [True, False]
    assert not await store.save(operation(), expected="applying", befores={"visby/gray-v": WRITTEN})
    assert await store.before("op-1", "visby/gray-v") is None
    assert await store.save(operation(state="undone"), expected="undoing")
    assert await kept(store) == [False, False]


async def test_what_was_committed_keeps_nothing_of_before(store: OperationStore, database: Database) -> None:
    for ident in ("op-1", "op-2"):
        await store.add(operation(ident))
        assert await store.save(operation(ident), expected="applying", befores={"riga/gray-r": WRITTEN})
    assert await database.write(lambda c: commit_operation(c, "op-1", 300.0))
    assert await kept(store) == [False, False]
    assert await store.before("op-2", "riga/gray-r") == BEFORE


async def test_the_burden_of_an_owner_is_what_is_open_for_them(store: OperationStore) -> None:
    assert await store.burden("alice") == Burden(0, 0)
    befores = {"riga/gray-r": WRITTEN, "visby/gray-v": b"{}"}
    for ident, changes in {
        "op-1": {"state": "applying"},
        "op-2": {"state": "undoing"},
        "op-3": {"state": "undoing", "kind": "remove"},
        "op-4": {"state": "undoing", "owner": "bob"},
        "op-5": {"state": "undone"},
    }.items():
        await store.add(operation(ident, **{**changes, "state": "applying"}))
        assert await store.save(operation(ident, **changes), expected="applying", befores=befores)
    assert await store.burden("alice") == Burden(1, 3 * (len(WRITTEN) + 2))
    assert await store.burden("bob") == Burden(1, len(WRITTEN) + 2)


async def test_only_what_ended_long_ago_is_forgotten(store: OperationStore) -> None:
    for state in ("applying", "committed", "undoing", "undone"):
        for age in (100.0, 200.0):
            await store.add(operation(f"{state}-{age:g}", state=state, updated=age))
    assert await store.forget(100.0, 10) == 0
    assert await store.forget(150.0, 1) == 1
    assert await store.forget(150.0, 10) == 1
    assert await store.forget(1000.0, 10) == 2
    assert len(await store.open()) == 4
    assert await store.get("undoing-100") is not None
