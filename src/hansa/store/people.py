"""How are users remembered? `storage.PeopleRecords` in the database; a namespace belongs to one user only."""

from collections.abc import Callable
from dataclasses import replace

import sqlalchemy as sa
from sqlalchemy import exc

from hansa import identity
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

    async def move(self, old: str, new: str) -> None:
        """The people of an issuer that has another address now; they keep their uids. Raises `AnotherPerson` where
        somebody came under both addresses already."""
        moved = users.update().where(users.c.issuer == old).values(issuer=new)
        try:
            await self._database.write(lambda connection: connection.execute(moved))
        except exc.IntegrityError:
            raise identity.errors.AnotherPerson(
                f"somebody is on record with the same subject at {old} and at {new}",
                hint=f"take {old} out of formerly: the two are different people here",
            ) from None


def _add(connection: sa.Connection, person: PersonRecord, choose: Callable[[OwnerOf], str]) -> PersonRecord:
    row = connection.execute(sa.select(users).where(users.c.uid == person.uid)).one_or_none()
    if row is not None:
        if (row.issuer, row.subject) != (person.issuer, person.subject):
            raise identity.errors.AnotherPerson(
                f"the uid {person.uid[:60]!r} is somebody else's", hint="tell the cluster's operator"
            )
        return _record(row)

    def owner_of(namespace: str) -> str | None:
        return connection.scalar(sa.select(users.c.uid).where(users.c.namespace == namespace))

    added = replace(person, namespace=choose(owner_of))
    connection.execute(
        sa.insert(users).values(
            uid=added.uid,
            name=added.name,
            issuer=added.issuer,
            subject=added.subject,
            namespace=added.namespace,
            store_secret=added.sealed,
            created=added.created,
        )
    )
    return added


def _record(row: sa.Row[tuple[object, ...]]) -> PersonRecord:
    return PersonRecord(
        uid=row.uid,
        name=row.name,
        issuer=row.issuer,
        subject=row.subject,
        namespace=row.namespace,
        sealed=bytes(row.store_secret),
        created=row.created,
    )
