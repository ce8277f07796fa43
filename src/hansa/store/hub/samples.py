"""History for charts: implements `federation.Samples`. Every slot is written once, by whichever hub takes its turn."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from hansa.federation import Fence, samples
from hansa.store.database import Database
from hansa.store.hub import changing
from hansa.store.hub.leases import take_turn
from hansa.store.hub.tables import removed
from hansa.store.hub.tables import samples as table


class SampleStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def write(
        self, fence: Fence, turn: int, rows: Sequence[samples.Row], keep_from: Mapping[int, int], made_of: int
    ) -> bool:
        def write(connection: sa.Connection) -> bool:
            changing.stand_still(connection)  # nobody is removed from here to the commit
            changing.check(connection, fence)
            if not take_turn(connection, fence, turn):
                return False
            gone = set(connection.execute(sa.select(removed.c.id).where(removed.c.version > made_of)).scalars())
            if kept := list(_without(rows, gone)):
                # a coarser slot may be there already, of a turn that caught up
                connection.execute(_adding(connection), [_values(row) for row in kept])
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


def forget(connection: sa.Connection, cluster: str) -> None:
    """As if it had never been; what it had is still in the sums of its region and of the whole."""
    shard = samples.shard_of(cluster)
    for row in connection.execute(sa.select(table).where(table.c.shard == shard)).all():
        body = bytes(row.body)
        rest = samples.without(body, (cluster,))
        if rest is body:
            continue
        this = sa.and_(table.c.level == row.level, table.c.slot == row.slot, table.c.shard == shard)
        connection.execute(table.update().where(this).values(body=rest) if rest else table.delete().where(this))


def _without(rows: Sequence[samples.Row], gone: Collection[str]) -> Iterator[samples.Row]:
    shards = {samples.shard_of(cluster) for cluster in gone}
    for row in rows:
        body = samples.without(row.body, gone) if row.shard in shards else row.body
        if body:
            yield replace(row, body=body)


def _adding(connection: sa.Connection) -> sa.Executable:
    insert = sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)
    return insert.on_conflict_do_nothing()


def _values(row: samples.Row) -> dict[str, object]:
    return {"level": row.level, "slot": row.slot, "shard": row.shard, "body": row.body}
