"""The revisions make exactly the tables the code uses, from every release on."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations

from hansa.store import DatabaseDown, make_engine, schema
from hansa.store.hub.tables import clusters, sections
from hansa.store.tables import jobs, metadata

# The last revision of every release: a database left there must come up to date.
RELEASES = {"empty": None, "0.1.0": "0001"}


@pytest.mark.parametrize("release", RELEASES)
def test_up_from_every_release(database_url: str, release: str) -> None:
    engine = make_engine(database_url)
    try:
        if RELEASES[release] is not None:
            schema.upgrade(engine, str(RELEASES[release]))
        schema.upgrade(engine)
        schema.upgrade(engine)  # the second time does nothing
        with engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            assert compare_metadata(context, metadata) == []
            assert schema.current(connection) == schema.head()
    finally:
        engine.dispose()


@pytest.mark.parametrize("release", [*RELEASES, "copied"])
def test_no_number_is_given_twice(database_url: str, release: str) -> None:
    """Also by SQLite, which would begin again at the highest that is left; also where jobs were copied meanwhile."""
    engine = make_engine(database_url)
    try:
        if release == "copied":
            schema.upgrade(engine, "0008")
            with engine.begin() as connection:
                connection.execute(sa.insert(jobs).values(_job("before")))
                _copy(connection, "jobs")
        elif RELEASES[release] is not None:
            schema.upgrade(engine, str(RELEASES[release]))
        schema.upgrade(engine)
        with engine.begin() as connection:
            first, second = (connection.execute(sa.insert(jobs).values(_job(name))) for name in ("one", "two"))
            connection.execute(sa.delete(jobs).where(jobs.c.name == "two"))
            third = connection.execute(sa.insert(jobs).values(_job("three")))
            assert len({tuple(one.inserted_primary_key or ()) for one in (first, second, third)}) == 3
            there = {*connection.execute(sa.select(jobs.c.name)).scalars()}
            assert there - {"before"} == {"one", "three"}
            assert ("before" in there) == (release == "copied")
            assert {index["name"] for index in sa.inspect(connection).get_indexes("jobs")} >= {
                index.name for index in jobs.indexes
            }
            if connection.dialect.name == "sqlite":
                made = connection.execute(sa.text("select name, sql from sqlite_master where type = 'table'")).all()
                counting = {row.name for row in made if "AUTOINCREMENT" in row.sql}
                assert counting == {
                    one.name for one in metadata.tables.values() if one.dialect_options["sqlite"]["autoincrement"]
                }
    finally:
        engine.dispose()


def _copy(connection: sa.Connection, table: str) -> None:
    """What adding a column once did on SQLite: it lost which numbers were given."""
    if connection.dialect.name == "sqlite":
        with Operations(MigrationContext.configure(connection)).batch_alter_table(table, recreate="always"):
            pass


def _job(name: str) -> dict[str, Any]:
    text = ("service", "owner", "viewer", "status", "phase", "reason")
    numbers = ("created", "cpu", "memory", "attempt", "cpu_seconds")
    return {"name": name, "event": b"", **dict.fromkeys(text, "x"), **dict.fromkeys(numbers, 1)}


def test_members_stay_where_others_reach_them(database_url: str) -> None:
    """From before addresses were approved. No member may have said that its certificate is not to be checked, and what
    was heard under a number far in the future is not the newest for ever."""
    rows = {"lubeck": ("hansa", False), "visby": ("hansa", True), "valencia": ("oscar", False)}
    engine = make_engine(database_url)
    try:
        schema.upgrade(engine, "0003")
        with engine.begin() as connection:
            for ident, (kind, verify) in rows.items():
                told = json.dumps({"endpoint": f"https://{ident}.example", "verify": verify})
                connection.execute(_CLUSTER, {"id": ident, "kind": kind, "told": told})
                connection.execute(_SECTION, {"id": ident, "number": 2**62, "body": b"{}"})
        schema.upgrade(engine)
        with engine.connect() as connection:
            found = {row.id: row for row in connection.execute(sa.select(clusters))}
            numbers = set(connection.execute(sa.select(sections.c.number)).scalars())
    finally:
        engine.dispose()
    assert {ident: row.endpoint for ident, row in found.items()} == {
        ident: f"https://{ident}.example" for ident in rows
    }
    assert {ident: row.verify for ident, row in found.items()} == {"lubeck": True, "visby": True, "valencia": False}
    assert {row.refused for row in found.values()} == {""}
    assert max(numbers) <= time.time() * 1000


_CLUSTER = sa.text("""
    insert into hub_clusters (id, version, kind, state, since, reason, incarnation, joined, told, overrides, cordoned,
        wanted, serials, desired)
    values (:id, 1, :kind, 'ready', 1, '', 1, 1, :told, '{}', false, 'member', '[]', 1)""")
_SECTION = sa.text("""
    insert into hub_sections (cluster, name, version, number, body, writer)
    values (:id, 'totals', 1, :number, :body, 'hub')""")


def test_a_server_out_of_reach_is_said_in_a_line(tmp_path: Path) -> None:
    engine = make_engine(f"postgresql://nobody@/none?host={tmp_path}")
    with pytest.raises(DatabaseDown) as caught:
        schema.upgrade(engine)
    assert "\n" not in caught.value.message
    assert caught.value.hint


def test_a_newer_database_is_refused(database_url: str) -> None:
    engine = make_engine(database_url)
    try:
        schema.upgrade(engine)
        with engine.begin() as connection:
            connection.execute(sa.text("update alembic_version set version_num = 'from-the-future'"))
        with pytest.raises(schema.SchemaTooNew) as caught:
            schema.upgrade(engine)
        assert caught.value.hint
    finally:
        engine.dispose()
