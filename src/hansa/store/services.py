"""How services are remembered: rows in the database, and all of them in memory for reading.

One manager owns one database (it holds a lock on its data folder), so memory and rows cannot drift: every write
changes the row first and the memory after the commit.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import msgspec
import sqlalchemy as sa

from hansa.identity import Vault
from hansa.services import Record, Service, ServiceBusy, ServiceExists, ServiceNotFound
from hansa.store.database import Database
from hansa.store.operations import commit_operation
from hansa.store.tables import services as table
from hansa.store.upsert import upsert

_TOKEN, _HEADERS, _BUCKETS, _ENDPOINTS = "kept.token", "kept.headers", "kept.bucket_owners", "kept.endpoints"
_KEPT = frozenset({_TOKEN, _HEADERS, _BUCKETS, _ENDPOINTS})


class ServiceStore:
    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault
        self._records: dict[str, Record] = {}
        self._sealed: dict[str, bytes] = {}
        self._unsure: set[str] = set()  # the database did not say whether the last write of these was committed

    async def load(self) -> None:
        rows = await self._database.read(lambda connection: connection.execute(sa.select(table)).mappings().all())
        self._records = {row["name"]: _record(row, self._vault.open(row["sealed"])) for row in rows}
        self._sealed = {row["name"]: row["sealed"] for row in rows}

    def get(self, name: str) -> Record | None:
        return self._records.get(name)

    def all(self) -> Sequence[Record]:
        return list(self._records.values())

    def secrets(self, name: str) -> Mapping[str, str]:
        sealed = self._sealed.get(name)
        opened = self._vault.open(sealed) if sealed else {}
        return {path: text for path, text in opened.items() if path not in _KEPT}

    async def add(self, record: Record, secrets: Mapping[str, str]) -> None:
        name = record.service.name
        if name in self._records:
            raise _taken(name)
        sealed = self._vault.seal({**secrets, **_own_parts(record)})
        values = {"name": name, "sealed": sealed, **_values(record)}

        over = name in self._unsure  # the row that may be there is ours, and nobody was told of it

        def insert(connection: sa.Connection) -> None:
            if over:
                upsert(connection, table, values)
            else:
                connection.execute(table.insert().values(values))

        self._records[name] = record  # the name is ours while the row is written: a second create sees it
        try:
            await self._database.write(insert)
        except sa.exc.IntegrityError as error:
            self._records.pop(name, None)
            raise _taken(name) from error
        except BaseException:
            self._records.pop(name, None)
            self._unsure.add(name)
            raise
        self._unsure.discard(name)
        self._sealed[name] = sealed

    async def replace(
        self, record: Record, secrets: Mapping[str, str], expected_version: int, *, commits: str = ""
    ) -> Record:
        name = record.service.name
        fresh = replace(record, version=expected_version + 1)
        sealed = self._vault.seal({**secrets, **_own_parts(record)})

        def update(connection: sa.Connection) -> int:
            # unsure: an earlier try may have committed it already, together with this very change
            if commits and not commit_operation(connection, commits, fresh.updated) and len(versions) == 1:
                return 0
            statement = table.update().where(table.c.name == name, table.c.version.in_(versions))
            return connection.execute(statement.values(sealed=sealed, **_values(fresh))).rowcount

        # a change whose answer got lost may have raised the version in the row, not in memory
        versions = (expected_version, expected_version + 1) if name in self._unsure else (expected_version,)
        try:
            changed = await self._database.write(update)
        except BaseException:
            self._unsure.add(name)
            raise
        self._unsure.discard(name)
        if changed == 0:
            if name not in self._records:
                raise ServiceNotFound(f"there is no service {name}")
            raise ServiceBusy(
                f"service {name} was changed by somebody else at the same time",
                hint="read it again and repeat",
            )
        self._records[name] = fresh
        self._sealed[name] = sealed
        return fresh

    async def remove(self, name: str) -> None:
        await self._database.write(lambda connection: connection.execute(table.delete().where(table.c.name == name)))
        self._records.pop(name, None)
        self._sealed.pop(name, None)
        self._unsure.discard(name)


def _taken(name: str) -> ServiceExists:
    return ServiceExists(
        f"a service named {name} exists in this cluster", hint="choose another name, or update it with PUT"
    )


def _values(record: Record) -> dict[str, object]:
    return {
        "version": record.version,
        "phase": record.phase,
        "stopped": record.stopped,
        "definition": msgspec.json.encode(_blanked(record.service)).decode(),
        "made_buckets": json.dumps(list(record.made_buckets)),
        "created": record.created,
        "updated": record.updated,
    }


def _own_parts(record: Record) -> dict[str, str]:
    """What a definition carries in memory, for it is needed at every call, and must not lie in the clear on disk; and
    what is no part of the definition."""
    service = record.service
    members = service.federation.members if service.federation else ()
    return {
        _TOKEN: service.token,
        _HEADERS: json.dumps([member.headers for member in members]),
        _BUCKETS: json.dumps(dict(record.bucket_owners)),
        _ENDPOINTS: json.dumps(dict(record.endpoints)),
    }


def _blanked(service: Service) -> Service:
    federation = service.federation
    if federation is not None:
        members = tuple(msgspec.structs.replace(member, headers=None) for member in federation.members)
        federation = msgspec.structs.replace(federation, members=members)
    return msgspec.structs.replace(service, token="", federation=federation)


def _filled(service: Service, opened: Mapping[str, str]) -> Service:
    federation = service.federation
    if federation is not None:
        headers = json.loads(opened.get(_HEADERS, "[]"))
        members = tuple(
            msgspec.structs.replace(member, headers=given)
            for member, given in zip(federation.members, headers, strict=True)
        )
        federation = msgspec.structs.replace(federation, members=members)
    return msgspec.structs.replace(service, token=opened.get(_TOKEN, ""), federation=federation)


def _record(row: sa.RowMapping, opened: Mapping[str, str]) -> Record:
    return Record(
        service=_filled(msgspec.json.decode(row["definition"], type=Service), opened),
        version=row["version"],
        phase=cast("object", row["phase"]),  # type: ignore[arg-type]
        stopped=row["stopped"],
        made_buckets=tuple(json.loads(row["made_buckets"])),
        created=row["created"],
        updated=row["updated"],
        bucket_owners=json.loads(opened.get(_BUCKETS, "{}")),
        endpoints=json.loads(opened.get(_ENDPOINTS, "{}")),
    )
