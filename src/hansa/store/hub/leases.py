"""Which hub process does which periodic work? Implements `federation.Leases`; times are the database's."""

from collections.abc import Mapping

import sqlalchemy as sa

from hansa.federation import Fence
from hansa.store.database import Database
from hansa.store.hub import changing
from hansa.store.hub.tables import leases, turns
from hansa.store.upsert import add_once


class LeaseStore:
    def __init__(self, database: Database, holder: str) -> None:
        self._database = database
        self._holder = holder

    async def hold(self, work: str, seconds: float) -> Fence | None:
        def write(connection: sa.Connection) -> Fence | None:
            now = changing.now(connection)
            first = {"work": work, "holder": self._holder, "epoch": 1, "expires": now + seconds}
            if add_once(connection, leases, first):
                return Fence(work, self._holder, 1)
            row = connection.execute(sa.select(leases).where(leases.c.work == work).with_for_update()).one()
            now = changing.now(connection)  # waiting for the row's lock may have taken long
            alive = row.expires > now
            if alive and row.holder != self._holder:
                return None
            # one's own lease that ran out is a new one: somebody may have looked at it in between
            epoch = row.epoch if alive else row.epoch + 1
            taken = leases.update().where(leases.c.work == work)
            connection.execute(taken.values(holder=self._holder, epoch=epoch, expires=now + seconds))
            return Fence(work, self._holder, epoch)

        return await self._database.write(write)

    async def release(self, fence: Fence) -> None:
        mine = sa.and_(leases.c.work == fence.work, leases.c.holder == fence.holder, leases.c.epoch == fence.epoch)
        await self._database.write(lambda connection: connection.execute(leases.update().where(mine).values(expires=0)))

    async def holders(self) -> Mapping[str, str]:
        def read(connection: sa.Connection) -> dict[str, str]:
            alive = sa.select(leases.c.work, leases.c.holder).where(leases.c.expires > changing.now(connection))
            return {row.work: row.holder for row in connection.execute(alive)}

        return await self._database.read(read)

    async def once(self, fence: Fence, slot: int) -> bool:
        def write(connection: sa.Connection) -> bool:
            changing.check(connection, fence)
            return take_turn(connection, fence, slot)

        return await self._database.write(write)


def take_turn(connection: sa.Connection, fence: Fence, slot: int) -> bool:
    """Part of the transaction that does the work: done and taken are one."""
    row = {
        "work": fence.work,
        "slot": slot,
        "holder": fence.holder,
        "epoch": fence.epoch,
        "at": changing.now(connection),
    }
    return add_once(connection, turns, row)
