"""History for charts: implements `federation.Samples`. Every slot is written once, by whichever hub takes its turn."""

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from hansa.federation import Fence, samples
from hansa.store.database import Database
from hansa.store.hub import changing
from hansa.store.hub.leases import take_turn
from hansa.store.hub.tables import samples as table


class SampleStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def write(self, fence: Fence, turn: int, rows: Sequence[samples.Row], keep_from: Mapping[int, int]) -> bool:
        def write(connection: sa.Connection) -> bool:
            changing.check(connection, fence)
            if not take_turn(connection, fence, turn):
                return False
            if rows:
                # a coarser slot may be there already, of a turn that caught up
                connection.execute(_adding(connection), [_values(row) for row in rows])
            for level, slot in keep_from.items():
                connection.execute(table.delete().where(table.c.level == level, table.c.slot < slot))
            return True

        return await self._database.write(write)

    async def read(self, level: int, shard: int, first: int, last: int) -> Sequence[samples.Row]:
        wanted = sa.and_(table.c.level == level, table.c.slot.between(first, last), table.c.shard == shard)
        query = sa.select(table).where(wanted).order_by(table.c.slot)

        def read(connection: sa.Connection) -> list[samples.Row]:
            return [samples.Row(one.level, one.slot, one.shard, bytes(one.body)) for one in connection.execute(query)]

        return await self._database.read(read)

    async def newest(self, level: int) -> int | None:
        query = sa.select(sa.func.max(table.c.slot)).where(table.c.level == level)
        return await self._database.read(lambda connection: connection.execute(query).scalar())


def _adding(connection: sa.Connection) -> sa.Executable:
    insert = sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)
    return insert.on_conflict_do_nothing()


def _values(row: samples.Row) -> dict[str, object]:
    return {"level": row.level, "slot": row.slot, "shard": row.shard, "body": row.body}
