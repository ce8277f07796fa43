"""Keys of runs that the object store was to end, and was away: remembered until it has."""

from collections.abc import Sequence

import sqlalchemy as sa

from hansa.store.database import Database
from hansa.store.tables import loan_ends as table
from hansa.store.upsert import add_once


class LoanEndStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, name: str, now: float) -> None:
        row = {"name": name, "since": now}
        await self._database.write(lambda connection: add_once(connection, table, row))

    async def remove(self, name: str) -> None:
        await self._database.write(lambda connection: connection.execute(table.delete().where(table.c.name == name)))

    async def all(self) -> Sequence[str]:
        oldest = sa.select(table.c.name).order_by(table.c.since)
        return await self._database.read(lambda connection: connection.execute(oldest).scalars().all())
