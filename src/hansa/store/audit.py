"""Who touched a secret: rows that are added, never changed, and dropped when they are old enough; the same as log lines
of `hansa.audit`."""

from collections.abc import Sequence

import sqlalchemy as sa
import structlog

from hansa.services import credentials
from hansa.store.database import Database
from hansa.store.tables import audit as table

_log = structlog.get_logger("hansa.audit")
_LONGEST_DETAIL = 2000


def add_entry(connection: sa.Connection, entry: credentials.AuditEntry) -> None:
    """Part of another transaction: what was done and that it was done are written together."""
    connection.execute(
        table.insert().values(
            at=entry.at,
            actor=entry.actor[:255],
            action=entry.action,
            subject=entry.subject[:255],
            detail=entry.detail[:_LONGEST_DETAIL],
        )
    )


def tell(entry: credentials.AuditEntry) -> None:
    _log.info(entry.action, actor=entry.actor, subject=entry.subject, detail=entry.detail)


class AuditStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(self, entry: credentials.AuditEntry) -> None:
        await self._database.write(lambda connection: add_entry(connection, entry))
        tell(entry)

    async def of(self, subject: str, *, since: float = 0.0, most: int = 100) -> Sequence[credentials.AuditEntry]:
        query = (
            sa.select(table)
            .where(table.c.subject == subject, table.c.at >= since)
            .order_by(table.c.at.desc(), table.c.id.desc())
            .limit(most)
        )
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [credentials.AuditEntry(row.at, row.actor, row.action, row.subject, row.detail) for row in rows]

    async def forget(self, before: float, most: int) -> int:
        def write(connection: sa.Connection) -> int:
            old = sa.select(table.c.id).where(table.c.at < before).order_by(table.c.at).limit(most)
            numbers = list(connection.execute(old).scalars())
            if numbers:
                connection.execute(table.delete().where(table.c.id.in_(numbers)))
            return len(numbers)

        return await self._database.write(write)
