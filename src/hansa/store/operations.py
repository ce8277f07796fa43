"""How operations over several clusters are remembered; their credentials are sealed. These, and what was at members
before, go in the write that ends an operation; the rest of it some time later."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import msgspec
import sqlalchemy as sa

from hansa.identity import Vault
from hansa.services import Burden, Operation, Outline, Touched
from hansa.store.database import Database
from hansa.store.tables import befores as kept
from hansa.store.tables import operations as table
from hansa.store.upsert import upsert

_OPEN = ("applying", "undoing")
_MOST_OPEN = 10_000  # looked at in one go


def commit_operation(connection: sa.Connection, ident: str, now: float) -> bool:
    """Part of another transaction: the operation has succeeded, and nothing of it will be taken back."""
    statement = (
        table.update()
        .where(table.c.id == ident, table.c.state == "applying")
        .values(state="committed", sealed=b"", updated=now)
    )
    if not connection.execute(statement).rowcount:
        return False
    _drop_befores(connection, [ident])
    return True


def _drop_befores(connection: sa.Connection, idents: Sequence[str]) -> None:
    connection.execute(kept.delete().where(kept.c.operation.in_(idents)))


class OperationStore:
    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault

    async def add(self, operation: Operation) -> None:
        values = {"id": operation.id, **self._values(operation)}
        await self._database.write(lambda c: c.execute(table.insert().values(values)))

    async def save(self, operation: Operation, *, expected: str, befores: Mapping[str, bytes] | None = None) -> bool:
        moved = table.update().where(table.c.id == operation.id, table.c.state == expected)
        statement = moved.values(self._values(operation))

        def write(connection: sa.Connection) -> bool:
            if not connection.execute(statement).rowcount:
                return False
            for member, definition in (befores or {}).items():
                row = {"operation": operation.id, "member": member, "size": len(definition), "definition": definition}
                upsert(connection, kept, row)
            if operation.state not in _OPEN:
                _drop_befores(connection, [operation.id])
            return True

        return await self._database.write(write)

    async def before(self, ident: str, member: str) -> dict[str, Any] | None:
        statement = sa.select(kept.c.definition).where(kept.c.operation == ident, kept.c.member == member)

        def read(connection: sa.Connection) -> dict[str, Any] | None:
            found = connection.execute(statement).scalar()
            return None if found is None else msgspec.json.decode(found, type=dict[str, Any])

        return await self._database.read(read)

    async def burden(self, owner: str) -> Burden:
        undoing = table.c.owner == owner, table.c.kind == "create", table.c.state == "undoing"
        number = sa.select(sa.func.count()).select_from(table).where(*undoing)
        whose = sa.select(table.c.id).where(table.c.owner == owner, table.c.state.in_(_OPEN))
        size = sa.select(sa.func.coalesce(sa.func.sum(kept.c.size), 0)).where(kept.c.operation.in_(whose))

        def read(connection: sa.Connection) -> Burden:
            return Burden(*(int(connection.execute(one).scalar_one()) for one in (number, size)))

        return await self._database.read(read)

    async def get(self, ident: str) -> Operation | None:
        found = await self._select(table.c.id == ident, 1)
        return found[0] if found else None

    async def open(self) -> Sequence[Outline]:
        columns = table.c.id, table.c.state, table.c.created, table.c.updated
        statement = sa.select(*columns).where(table.c.state.in_(_OPEN)).order_by(table.c.updated).limit(_MOST_OPEN)
        rows = await self._database.read(lambda c: c.execute(statement).all())
        return [Outline(*row) for row in rows]

    async def forget(self, before: float, most: int) -> int:
        ended = sa.select(table.c.id).where(table.c.state.not_in(_OPEN), table.c.updated < before).limit(most)

        def write(connection: sa.Connection) -> int:
            idents = list(connection.execute(ended).scalars())
            if idents:
                connection.execute(table.delete().where(table.c.id.in_(idents)))
            return len(idents)

        return await self._database.write(write)

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
