"""Which object versions already became jobs, and how far the stream of uploads was read."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from hansa.store import in_turn
from hansa.store.database import Database
from hansa.store.tables import cursors, uploads
from hansa.store.upsert import add_missing, upsert

Version = tuple[str, str, str, int]  # bucket, key, etag, modified
_VERSION = ("service", "bucket", "key", "etag", "modified")
_FORGET = uploads.delete().where(*(uploads.c[name] == sa.bindparam(f"of_{name}") for name in _VERSION))


def ledger_row(service: str, bucket: str, key: str, etag: str, modified: int, now: float) -> dict[str, Any]:
    return {"service": service, "bucket": bucket, "key": key, "etag": etag, "modified": modified, "seen": now}


class UploadLedger:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def mark_seen(self, service: str, objects: Sequence[Version], now: float) -> None:
        """Objects that were there before the service: no jobs for them."""

        def write(some: Sequence[Version], connection: sa.Connection) -> None:
            add_missing(connection, uploads, [ledger_row(service, *version, now) for version in some])

        await in_turn.write(self._database, objects, write)

    async def seen(self, service: str, bucket: str) -> set[tuple[str, str, int]]:
        columns = (uploads.c.key, uploads.c.etag, uploads.c.modified)
        statement = sa.select(*columns).where(uploads.c.service == service, uploads.c.bucket == bucket)
        return await self._database.read_long(lambda c: {(k, e, m) for k, e, m in c.execute(statement)})

    async def forget(self, service: str, gone: Sequence[Version]) -> None:
        """Rows of object versions that do not exist any more, so that the ledger is as small as the folder."""

        names = [f"of_{name}" for name in _VERSION]

        def write(some: Sequence[Version], connection: sa.Connection) -> None:
            connection.execute(_FORGET, [dict(zip(names, (service, *version), strict=True)) for version in some])

        await in_turn.write(self._database, gone, write)

    async def forget_service(self, service: str) -> None:
        await in_turn.delete(self._database, uploads, uploads.c.service == service)

    async def cursor(self, name: str) -> int | None:
        statement = sa.select(cursors.c.value).where(cursors.c.name == name)
        return await self._database.read(lambda c: c.execute(statement).scalar())

    async def move_cursor(self, name: str, value: int) -> None:
        await self._database.write(lambda c: upsert(c, cursors, {"name": name, "value": value}))
