"""How refresh tokens and their successors are remembered: sealed, each tied to its own row."""

from typing import Any

import sqlalchemy as sa

from hansa.identity import Vault
from hansa.services import credentials
from hansa.store.audit import add_entry, tell
from hansa.store.database import Database
from hansa.store.tables import lineages as table
from hansa.store.upsert import upsert


class LineageStore:
    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault

    async def get(self, mark: str) -> credentials.Lineage | None:
        query = sa.select(table).where(table.c.mark == mark)
        row = await self._database.read(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else self._lineage(row)

    async def save(self, lineage: credentials.Lineage, entry: credentials.AuditEntry | None = None) -> None:
        row = self._row(lineage)

        def write(connection: sa.Connection) -> None:
            upsert(connection, table, row)
            if entry is not None:
                add_entry(connection, entry)

        await self._database.write(write)
        if entry is not None:
            tell(entry)

    async def rotates(self, issuer: str) -> bool | None:
        query = sa.select(table.c.rotates).where(table.c.issuer == issuer, table.c.rotates.is_not(None)).distinct()
        seen = await self._database.read(lambda connection: set(connection.scalars(query)))
        return any(seen) if seen else None

    async def forget(self, before: float, still_used: frozenset[str]) -> None:
        last_used = sa.func.coalesce(sa.case((table.c.renewed > table.c.since, table.c.renewed)), table.c.since)
        query = sa.select(table.c.mark).where(last_used < before)
        old = await self._database.read(lambda connection: list(connection.scalars(query)))
        if gone := [mark for mark in old if mark not in still_used]:
            await self._database.write(
                lambda connection: connection.execute(table.delete().where(table.c.mark.in_(gone[:500])))
            )

    def _row(self, lineage: credentials.Lineage) -> dict[str, Any]:
        sealed = self._vault.seal({"token": lineage.token}, purpose=_purpose(lineage.mark)) if lineage.token else b""
        return {
            "mark": lineage.mark,
            "issuer": lineage.issuer,
            "sealed": sealed,
            "obtained": lineage.obtained,
            "renewed": lineage.renewed,
            "rotates": lineage.rotates,
            "state": lineage.state,
            "since": lineage.since,
            "reason": lineage.reason[:2000],
            "begun": lineage.begun,
        }

    def _lineage(self, row: sa.Row[Any]) -> credentials.Lineage:
        token = self._vault.open(bytes(row.sealed), purpose=_purpose(row.mark))["token"] if row.sealed else ""
        return credentials.Lineage(
            mark=row.mark,
            issuer=row.issuer,
            token=token,
            obtained=row.obtained,
            renewed=row.renewed,
            rotates=row.rotates,
            state=row.state,
            since=row.since,
            reason=row.reason,
            begun=row.begun,
        )


def _purpose(mark: str) -> str:
    return f"refresh token {mark}"
