"""Every version of every document: implements `federation.Documents`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import sqlalchemy as sa

from hansa.federation import DocumentRecord, Note, RolloutRecord
from hansa.store.database import Database
from hansa.store.hub import changing, rollouts
from hansa.store.hub.tables import documents


class DocumentStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def after(self, seq: int) -> Sequence[DocumentRecord]:
        query = sa.select(documents).where(documents.c.seq > seq).order_by(documents.c.seq, documents.c.version)
        return await self._database.read(lambda connection: [_record(row) for row in connection.execute(query)])

    async def add(
        self,
        record: DocumentRecord,
        *notes: Note,
        opens: RolloutRecord | None = None,
        closes: RolloutRecord | None = None,
    ) -> tuple[DocumentRecord, RolloutRecord | None] | None:
        def write(connection: sa.Connection) -> tuple[DocumentRecord, RolloutRecord | None] | None:
            # From here on nobody else writes, so what is looked at first stays so until the commit.
            seq = changing.next_version(connection)
            if not _is_next(connection, record) or (closes is not None and not rollouts.is_at(connection, closes)):
                return None
            written = replace(record, seq=seq, created=changing.now(connection))
            connection.execute(documents.insert().values(_row(written)))
            if closes is not None:
                rollouts.write(connection, closes, seq)
            opened = rollouts.insert(connection, opens, seq) if opens is not None else None
            changing.tell(connection, seq, *notes)
            return written, opened

        return await self._database.write(write)


def _is_next(connection: sa.Connection, record: DocumentRecord) -> bool:
    of_it = sa.and_(documents.c.sort == record.sort, documents.c.name == record.name)
    newest = connection.execute(sa.select(sa.func.max(documents.c.version)).where(of_it)).scalar() or 0
    return bool(record.version == newest + 1)


def _row(record: DocumentRecord) -> dict[str, Any]:
    return {
        "sort": record.sort,
        "name": record.name,
        "version": record.version,
        "seq": record.seq,
        "body": msgspec.json.encode(record.body).decode(),
        "author": record.author,
        "comment": record.comment,
        "created": record.created,
        "removed": record.removed,
    }


def _record(row: Any) -> DocumentRecord:
    return DocumentRecord(
        sort=row.sort,
        name=row.name,
        version=row.version,
        body=msgspec.json.decode(row.body),
        author=row.author,
        comment=row.comment,
        created=row.created,
        removed=row.removed,
        seq=row.seq,
    )
