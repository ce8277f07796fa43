"""A database of the version that kept what was at members in the plan, for ever: what is open can still be put back."""

import json

import sqlalchemy as sa

from hansa.identity import Vault
from hansa.services import Burden
from hansa.store import Database, OperationStore, make_engine, schema

_ADD = sa.text("""
    insert into operations (id, kind, subject, owner, state, plan, sealed, created, updated)
    values (:id, 'create', 'gray', 'alice', :state, :plan, :sealed, 4, 5)""")
_BEFORE = {"name": "gray-r", "script": "echo \u00f1\n", "memory": None}


def _touched(cluster: str, before: object) -> dict[str, object]:
    return {
        "cluster_id": cluster,
        "endpoint": f"https://{cluster}",
        "service_name": "gray-m",
        "before": before,
        "undone": False,
        "error": "it does not answer",
        "moved": "",
    }


async def test_what_was_at_members_is_moved_out_of_the_plan(database_url: str) -> None:
    engine = make_engine(database_url)
    schema.upgrade(engine, "0010")
    plan = [_touched("visby", None), _touched("riga", _BEFORE), _touched("fat", {"script": "x" * 9 * 2**20})]
    with engine.begin() as connection:
        for state in ("applying", "committed", "undoing", "undone"):
            connection.execute(_ADD, {"id": state, "state": state, "plan": json.dumps(plan), "sealed": b""})
    schema.upgrade(engine)
    database = Database(engine)
    database.start()
    try:
        store = OperationStore(database, Vault([Vault.new_key()]))
        assert {one.id for one in await store.open()} == {"applying", "undoing"}
        assert await store.get("committed") is await store.get("undone") is None
        found = await store.get("undoing")
        assert found is not None
        assert [(one.key, one.existed, one.undone) for one in found.plan] == [
            ("visby/gray-m", False, False),
            ("riga/gray-m", True, False),
            ("fat/gray-m", True, True),  # whoever told that would not take it back
        ]
        assert await store.before("undoing", "riga/gray-m") == _BEFORE
        assert await store.before("undoing", "visby/gray-m") is await store.before("undoing", "fat/gray-m") is None
        assert (await store.burden("alice")).kept < 1000
        assert await store.burden("bob") == Burden(0, 0)
    finally:
        await database.close()
