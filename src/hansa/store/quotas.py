"""How are users' own quotas remembered? What differs from the defaults, one row per user."""

from collections.abc import Mapping

import sqlalchemy as sa

from hansa.store.database import Database
from hansa.store.tables import quotas
from hansa.store.upsert import upsert


class QuotaStore:
    """`resources.QuotaRecords` in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> Mapping[str, str]:
        query = sa.select(quotas.c.uid, quotas.c.limits)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return {row.uid: row.limits for row in rows}

    async def put(self, uid: str, limits: str) -> None:
        row = {"uid": uid, "limits": limits}
        await self._database.write(lambda connection: upsert(connection, quotas, row))
