"""How are users remembered? `storage.PeopleRecords` in the database; a namespace belongs to one user only."""

from collections.abc import Callable
from dataclasses import replace

import sqlalchemy as sa
from sqlalchemy import exc

from hansa.storage import OwnerOf, PersonRecord
from hansa.store.database import Database
from hansa.store.tables import users

_ATTEMPTS = 5


class PeopleStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> list[PersonRecord]:
        query = sa.select(users).order_by(users.c.created, users.c.uid)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [_record(row) for row in rows]

    async def add(self, person: PersonRecord, choose: Callable[[OwnerOf], str]) -> PersonRecord:
        for attempt in range(_ATTEMPTS):
            try:
                return await self._database.write(lambda connection: _add(connection, person, choose))
            except exc.IntegrityError:
                # Another manager on the same database took the namespace, or added the user, at this moment.
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")


def _add(connection: sa.Connection, person: PersonRecord, choose: Callable[[OwnerOf], str]) -> PersonRecord:
    row = connection.execute(sa.select(users).where(users.c.uid == person.uid)).one_or_none()
    if row is not None:
        return _record(row)

    def owner_of(namespace: str) -> str | None:
        return connection.scalar(sa.select(users.c.uid).where(users.c.namespace == namespace))

    added = replace(person, namespace=choose(owner_of))
    connection.execute(
        sa.insert(users).values(
            uid=added.uid,
            name=added.name,
            issuer=added.issuer,
            namespace=added.namespace,
            store_secret=added.sealed,
            created=added.created,
        )
    )
    return added


def _record(row: sa.Row[tuple[object, ...]]) -> PersonRecord:
    return PersonRecord(row.uid, row.name, row.issuer, row.namespace, bytes(row.store_secret), row.created)
