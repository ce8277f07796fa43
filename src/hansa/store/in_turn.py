"""Many rows, some at a time. All writes go through one writer: whoever else writes has a turn in between."""

import functools
from collections.abc import Callable, Sequence
from typing import TypeVar

import sqlalchemy as sa

from hansa.store.database import Database

T = TypeVar("T")
AT_ONCE = 500


async def write(
    database: Database,
    items: Sequence[T],
    operation: Callable[[Sequence[T], sa.Connection], object],
    written: Callable[[T], object] = lambda item: None,
) -> None:
    """`operation` is given some of `items` at a time, and `written` hears of each when it is committed. What was
    written before a failure stays written."""
    for start in range(0, len(items), AT_ONCE):
        some = items[start : start + AT_ONCE]
        await database.write(functools.partial(operation, some))
        for item in some:
            written(item)


async def delete(database: Database, table: sa.Table, *where: sa.ColumnElement[bool]) -> None:
    keys = list(table.primary_key)
    some = sa.select(*keys).where(*where).limit(AT_ONCE)
    statement = table.delete().where(sa.tuple_(*keys).in_(some))
    while await database.write(lambda connection: connection.execute(statement).rowcount) == AT_ONCE:
        pass
