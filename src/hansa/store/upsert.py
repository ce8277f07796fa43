"""One row written whether it was there or not, in both databases we speak to."""

import functools
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite


def _insert(connection: sa.Connection, table: sa.Table) -> Any:
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)


def upsert(connection: sa.Connection, table: sa.Table, row: dict[str, Any]) -> None:
    """`row` holds every column; one with the same primary key is overwritten."""
    keys = [column.name for column in table.primary_key]
    rest = {name: value for name, value in row.items() if name not in keys}
    connection.execute(_insert(connection, table).values(row).on_conflict_do_update(index_elements=keys, set_=rest))


def add_once(connection: sa.Connection, table: sa.Table, row: dict[str, Any]) -> bool:
    """False if a row with the same key was there: it stays as it is. `row` holds every column but generated ones."""
    return connection.execute(_adding(connection.dialect.name, table), row).first() is not None


def add_missing(connection: sa.Connection, table: sa.Table, rows: Sequence[dict[str, Any]]) -> None:
    """Those with a key that was there stay as they are."""
    connection.execute(_insert(connection, table).on_conflict_do_nothing(), rows)


@functools.cache
def _adding(dialect: str, table: sa.Table) -> Any:
    """Made once for each table: every accepted job comes through here."""
    statement = (sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)).on_conflict_do_nothing()
    # what comes back tells, for a row count of a skipped insert differs between the databases
    return statement.returning(sa.literal(1))
