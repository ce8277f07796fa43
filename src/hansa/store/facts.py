"""Single values decided at run time, such as the allowed image repositories, as JSON by name."""

import json
from typing import Any

import sqlalchemy as sa

from hansa.store.database import Database
from hansa.store.tables import facts
from hansa.store.upsert import add_once, upsert


class Facts:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, name: str) -> Any:
        """None if it was never set (or set to null)."""
        query = sa.select(facts.c.value).where(facts.c.name == name)
        text = await self._database.read(lambda connection: connection.scalar(query))
        return None if text is None else json.loads(text)

    async def set(self, name: str, value: Any) -> None:
        row = {"name": name, "value": json.dumps(value)}
        await self._database.write(lambda connection: upsert(connection, facts, row))

    async def settle(self, name: str, value: Any) -> Any:
        """What is kept from now on: the value of whoever came first."""
        row = {"name": name, "value": json.dumps(value)}
        await self._database.write(lambda connection: add_once(connection, facts, row))
        return await self.get(name)
