"""What a manager remembers of its place in a federation, and the reports it keeps for its hub."""

import json
from collections.abc import Sequence
from dataclasses import fields as fields_of
from dataclasses import replace
from typing import Any

import msgspec
import sqlalchemy as sa

from hansa.federation import member
from hansa.messages.members import Desired, Report, Setting
from hansa.store.database import Database
from hansa.store.tables import facts, metadata
from hansa.store.upsert import upsert

_STANDING, _DESIRED, _DROPPED = "membership", "membership.desired", "membership.dropped"
_FIELDS = frozenset(one.name for one in fields_of(member.Remembered)) - {"desired"}

reports = sa.Table(
    "membership_reports",
    metadata,
    sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sqlite_autoincrement=True,  # the hub takes a number it has seen for a report it has
)


class MembershipStore:
    """Two facts: the standing, and what the hub told, which is large and changes by itself."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known = member.Remembered()

    async def load(self) -> member.Remembered:
        query = sa.select(facts.c.name, facts.c.value).where(facts.c.name.in_((_STANDING, _DESIRED)))
        rows = await self._database.read(lambda connection: {row.name: row.value for row in connection.execute(query)})
        standing = json.loads(rows.get(_STANDING, "{}"))
        fields = {name: standing[name] for name in _FIELDS if name in standing}
        if "documents" in fields:
            fields["documents"] = msgspec.convert(fields["documents"], tuple[Setting, ...])
        told = rows.get(_DESIRED, "null")
        self._known = member.Remembered(**fields, desired=msgspec.json.decode(told, type=Desired | None))
        return self._known

    async def save(self, remembered: member.Remembered) -> None:
        news: dict[str, Any] = {}
        if replace(remembered, desired=None) != replace(self._known, desired=None):
            news[_STANDING] = {name: getattr(remembered, name) for name in _FIELDS}
        if remembered.desired != self._known.desired:
            news[_DESIRED] = remembered.desired

        def write(connection: sa.Connection) -> None:  # encodes it, too, for it may be large
            for name, value in news.items():
                upsert(connection, facts, {"name": name, "value": msgspec.json.encode(value).decode()})

        await self._database.write(write)
        self._known = remembered


class ReportStore:
    def __init__(self, database: Database, most: int) -> None:
        self._database = database
        self._most = most

    async def add(self, at: float, kind: str, detail: str) -> None:
        row = {"at": at, "kind": kind[:32], "detail": detail[:2000]}

        def write(connection: sa.Connection) -> None:
            connection.execute(reports.insert(), row)
            count = connection.scalar(sa.select(sa.func.count()).select_from(reports)) or 0
            if count <= self._most:
                return
            last = sa.select(reports.c.number).order_by(reports.c.number).limit(count - self._most)
            connection.execute(reports.delete().where(reports.c.number.in_(last)))
            dropped = _dropped(connection) + count - self._most
            upsert(connection, facts, {"name": _DROPPED, "value": json.dumps(dropped)})

        await self._database.write(write)

    async def oldest(self, most: int) -> Sequence[Report]:
        query = sa.select(reports).order_by(reports.c.number).limit(most)
        rows = await self._database.read(lambda connection: connection.execute(query).mappings().all())
        return [Report(**row) for row in rows]

    async def forget(self, upto: int) -> None:
        def write(connection: sa.Connection) -> None:
            connection.execute(reports.delete().where(reports.c.number <= upto))
            if not connection.scalar(sa.select(sa.func.count()).select_from(reports)):
                connection.execute(facts.delete().where(facts.c.name == _DROPPED))

        await self._database.write(write)

    async def clear(self) -> None:
        def write(connection: sa.Connection) -> None:
            connection.execute(reports.delete())
            connection.execute(facts.delete().where(facts.c.name == _DROPPED))

        await self._database.write(write)

    async def counts(self) -> tuple[int, int]:
        def read(connection: sa.Connection) -> tuple[int, int]:
            return connection.scalar(sa.select(sa.func.count()).select_from(reports)) or 0, _dropped(connection)

        return await self._database.read(read)


def _dropped(connection: sa.Connection) -> int:
    return int(connection.scalar(sa.select(facts.c.value).where(facts.c.name == _DROPPED)) or 0)
