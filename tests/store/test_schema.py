"""The revisions make exactly the tables the code uses, from every release on."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from hansa.store import DatabaseDown, make_engine, schema
from hansa.store.tables import metadata

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
