"""How documents spread: implements `federation.Rollouts`. A row's body is the whole, columns are for searching."""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from hansa.federation import Fence, Note, RolloutRecord
from hansa.store.database import Database
from hansa.store.hub import changing
from hansa.store.hub.tables import rollouts

_BODY = msgspec.json.Decoder(RolloutRecord)


class RolloutStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def after(self, seq: int) -> Sequence[RolloutRecord]:
        newest = sa.select(sa.func.max(rollouts.c.id)).group_by(rollouts.c.document)
        query = sa.select(rollouts).where(rollouts.c.seq > seq, rollouts.c.id.in_(newest)).order_by(rollouts.c.id)
        return await self._database.read(lambda connection: [_record(row) for row in connection.execute(query)])

    async def put(self, record: RolloutRecord, *notes: Note, fence: Fence | None = None) -> RolloutRecord | None:
        def change(connection: sa.Connection) -> RolloutRecord | None:
            seq = changing.next_version(connection, fence)
            if not is_at(connection, record):
                return None
            written = write(connection, record, seq)
            changing.tell(connection, seq, *notes)
            return written

        return await self._database.write(change)

    async def tidy(self, keep: int, fence: Fence) -> None:
        age = sa.func.row_number().over(partition_by=rollouts.c.document, order_by=rollouts.c.id.desc())
        by_age = sa.select(rollouts.c.id, age.label("age")).subquery()
        old = sa.select(by_age.c.id).where(by_age.c.age > keep + 1)

        def change(connection: sa.Connection) -> None:
            changing.check(connection, fence)
            connection.execute(rollouts.delete().where(rollouts.c.id.in_(old)))

        await self._database.write(change)


def is_at(connection: sa.Connection, record: RolloutRecord) -> bool:
    """Whether it still is the one that was decided upon."""
    same = sa.and_(rollouts.c.id == record.id, rollouts.c.seq == record.seq)
    return connection.execute(sa.select(rollouts.c.id).where(same)).first() is not None


def naming(connection: sa.Connection, cluster: str) -> list[RolloutRecord]:
    """All in which its name occurs, of whatever age."""
    query = sa.select(rollouts).where(rollouts.c.body.contains(f'"{cluster}"', autoescape=True))
    return [_record(row) for row in connection.execute(query).all()]


def write(connection: sa.Connection, record: RolloutRecord, seq: int) -> RolloutRecord:
    written = msgspec.structs.replace(record, seq=seq)
    connection.execute(rollouts.update().where(rollouts.c.id == record.id).values(_row(written)))
    return written


def insert(connection: sa.Connection, record: RolloutRecord, seq: int) -> RolloutRecord:
    written = msgspec.structs.replace(record, seq=seq)
    ident = connection.execute(rollouts.insert().values(_row(written)).returning(rollouts.c.id)).scalar_one()
    return msgspec.structs.replace(written, id=ident)


def _row(record: RolloutRecord) -> dict[str, Any]:
    return {
        "seq": record.seq,
        "document": record.document,
        "version": record.version,
        "former": record.former,
        "state": record.state,
        "stage": record.stage,
        "since": record.since,
        "body": msgspec.json.encode(record).decode(),
    }


def _record(row: Any) -> RolloutRecord:
    return msgspec.structs.replace(_BODY.decode(row.body), id=row.id, seq=row.seq)
