"""How operations over several clusters are remembered; their credentials are sealed and go when they end."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from hansa.identity import Vault
from hansa.services import Operation, Touched
from hansa.store.database import Database
from hansa.store.tables import operations as table


def commit_operation(connection: sa.Connection, ident: str, now: float) -> bool:
    """Part of another transaction: the operation has succeeded and forgets its credentials."""
    statement = (
        table.update()
        .where(table.c.id == ident, table.c.state == "applying")
        .values(state="committed", sealed=b"", updated=now)
    )
    return bool(connection.execute(statement).rowcount)


class OperationStore:
    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault

    async def add(self, operation: Operation) -> None:
        values = {"id": operation.id, **self._values(operation)}
        await self._database.write(lambda c: c.execute(table.insert().values(values)))

    async def save(self, operation: Operation, *, expected: str) -> bool:
        statement = table.update().where(table.c.id == operation.id, table.c.state == expected)
        values = self._values(operation)
        return bool(await self._database.write(lambda c: c.execute(statement.values(values)).rowcount))

    async def get(self, ident: str) -> Operation | None:
        found = await self._select(table.c.id == ident, 1)
        return found[0] if found else None

    async def open(self) -> Sequence[Operation]:
        return await self._select(table.c.state.in_(("applying", "undoing")), 10_000)

    async def of(self, subject: str, most: int = 20) -> Sequence[Operation]:
        return await self._select(table.c.subject == subject, most)

    async def _select(self, which: sa.ColumnElement[bool], most: int) -> list[Operation]:
        statement = sa.select(table).where(which).order_by(table.c.created.desc()).limit(most)
        rows = await self._database.read(lambda c: c.execute(statement).mappings().all())
        return [self._operation(row) for row in rows]

    def _values(self, operation: Operation) -> dict[str, Any]:
        return {
            "kind": operation.kind,
            "subject": operation.subject,
            "owner": operation.owner,
            "state": operation.state,
            "plan": json.dumps([asdict(one) for one in operation.plan]),
            "sealed": self._vault.seal(operation.kept, purpose=operation.id) if operation.kept else b"",
            "created": operation.created,
            "updated": operation.updated,
        }

    def _operation(self, row: sa.RowMapping) -> Operation:
        return Operation(
            id=row["id"],
            kind=row["kind"],
            subject=row["subject"],
            owner=row["owner"],
            state=row["state"],
            plan=tuple(Touched(**one) for one in json.loads(row["plan"])),
            kept=self._vault.open(row["sealed"], purpose=row["id"]) if row["sealed"] else {},
            created=row["created"],
            updated=row["updated"],
        )
