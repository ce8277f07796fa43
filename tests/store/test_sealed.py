"""Does the database say whether it holds secrets that only the vault's key opens?"""

import sqlalchemy as sa

from hansa.store import make_engine, schema, sealed, tables
from hansa.store.hub import tables as hub_tables


def test_secrets_of_a_manager_and_of_a_hub_are_told_apart(database_url: str) -> None:
    engine = make_engine(database_url)
    try:
        assert not sealed.any_of_manager(engine)  # nothing is there yet
        schema.upgrade(engine)
        with engine.begin() as connection:
            person = {"uid": "u", "name": "u", "issuer": "i", "namespace": "n", "created": 0.0, "subject": "s"}
            connection.execute(sa.insert(tables.users).values(**person, store_secret=b""))
        assert not sealed.any_of_manager(engine)
        with engine.begin() as connection:
            connection.execute(sa.insert(hub_tables.credentials).values(cluster="visby", sealed=b"x"))
        assert (sealed.any_of_manager(engine), sealed.any_of_hub(engine)) == (False, True)
        with engine.begin() as connection:
            connection.execute(sa.update(tables.users).values(store_secret=b"x"))
        assert sealed.any_of_manager(engine)
    finally:
        engine.dispose()


def test_every_place_of_secrets_is_known() -> None:
    """A new column of bytes is either marked as sealed or listed here."""
    open_ones = {"jobs.event", "befores.definition", "hub_samples.body", "hub_sections.body"}
    known = {f"{column.table.name}.{column.name}" for column in sealed.COLUMNS}
    of_bytes = {
        f"{table.name}.{column.name}"
        for table in tables.metadata.tables.values()
        for column in table.columns
        if isinstance(column.type, sa.LargeBinary)
    }
    assert known == of_bytes - open_ones
