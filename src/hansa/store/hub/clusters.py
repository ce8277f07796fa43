"""The registry's rows: implements `federation.Clusters`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import sqlalchemy as sa

from hansa.federation import NOW, ClusterRecord, Fence, News, Note, Sighting, kept_changes
from hansa.messages.clusters import Facts
from hansa.messages.inventory import Change
from hansa.store.database import Database
from hansa.store.hub import changing, forgetting, tables
from hansa.store.hub.tables import (
    authorities,
    changes,
    clusters,
    documents,
    removed,
    rollouts,
    sections,
    sightings,
    turns,
    versions,
)
from hansa.store.upsert import upsert

_FACTS = msgspec.json.Decoder(Facts)
_TURNS_FOR = 86_400.0
_MOST_NEWS = 2000  # changes told at once; who was away for longer asks for the list
_PLAIN = (
    *("id", "kind", "state", "since", "reason", "incarnation", "joined", "cordoned", "wanted", "certificate_until"),
    *("endpoint", "verify", "refused", "version", "desired"),
)

# A sighting of a cluster that was removed, or of a former life, must not bring rows back.
_SIGHTED = sa.text("""
    insert into hub_sightings (cluster, version, incarnation, seen, number, run, received, writer)
    select id, :version, incarnation, :seen, :number, :run, :received, :writer from hub_clusters
    where id = :cluster and incarnation = :incarnation
    on conflict (cluster) do update set version = excluded.version, incarnation = excluded.incarnation,
        seen = excluded.seen, number = excluded.number, run = excluded.run, received = excluded.received,
        writer = excluded.writer
    where hub_sightings.incarnation < excluded.incarnation or hub_sightings.seen <= excluded.seen""")
_SECTION = sa.text("""
    insert into hub_sections (cluster, name, version, number, body, writer)
    select id, :name, :version, :number, :body, :writer from hub_clusters
    where id = :cluster and incarnation = :incarnation
    on conflict (cluster, name) do update set version = excluded.version, number = excluded.number,
        body = excluded.body, writer = excluded.writer
    where hub_sections.number < excluded.number""")
_NEWEST_OTHERS = sa.select(
    *(
        sa.select(sa.func.max(column)).scalar_subquery().label(name)
        for name, column in (
            ("authorities", authorities.c.version),
            ("documents", documents.c.seq),
            ("rollouts", rollouts.c.seq),
        )
    )
)


class ClusterStore:
    def __init__(self, database: Database, writer: str) -> None:
        self._database = database
        self._writer = writer

    async def news(self, after: int) -> News:
        def read(connection: sa.Connection) -> News:
            # The version is read first: what is committed after it comes again with the next news.
            counted = {row.id: row.version for row in connection.execute(sa.select(versions))}
            version, restored = counted[changing.COUNTED], counted.get(changing.RESTORED, 0)
            now = changing.now(connection)
            if version == after:
                return News(version, now, restored=restored)
            found = connection.execute(sa.select(clusters).where(clusters.c.version > after)).mappings()
            gone = connection.execute(sa.select(removed.c.id, removed.c.version).where(removed.c.version > after))
            return News(
                version=version,
                now=now,
                restored=restored,
                clusters=[_record(row) for row in found],
                removed={row.id: row.version for row in gone},
                sightings=self._sightings(connection, after),
                changes=_changes_after(connection, after) if after else (),
                others=_others(connection, after),
            )

        return await self._database.read(read)

    def _sightings(self, connection: sa.Connection, after: int) -> list[Sighting]:
        told = sa.and_(sections.c.version > after, sections.c.writer != self._writer)
        bodies: dict[str, dict[str, tuple[int, bytes]]] = {}
        for row in connection.execute(sa.select(sections).where(told)):
            bodies.setdefault(row.cluster, {})[row.name] = (row.number, bytes(row.body))
        seen = sa.select(sightings).where(sightings.c.version > after)
        # We may have heard it after the other hub and before this look: its row is ours then, the section is not.
        # Where nobody else writes, what we wrote ourselves is not read again.
        rows = connection.execute(seen if bodies else seen.where(sightings.c.writer != self._writer))
        return [
            Sighting(
                row.cluster,
                row.incarnation,
                row.seen,
                row.number,
                bodies.get(row.cluster, {}),
                received=row.received,
                run=row.run,
            )
            for row in rows
            if row.writer != self._writer or row.cluster in bodies
        ]

    async def put(
        self, record: ClusterRecord, *notes: Note, fence: Fence | None = None, credentials: bytes = b""
    ) -> ClusterRecord | None:
        def write(connection: sa.Connection) -> ClusterRecord | None:
            version = changing.next_version(connection, fence)
            written = _write(connection, record, version)
            if written is not None:
                changing.tell(connection, version, *notes)
                if credentials:
                    upsert(connection, tables.credentials, {"cluster": record.id, "sealed": credentials})
            return written

        return await self._database.write(write)

    async def put_all(
        self, records: Sequence[ClusterRecord], notes: Sequence[Note] = (), *, fence: Fence | None = None
    ) -> Sequence[ClusterRecord]:
        def write(connection: sa.Connection) -> list[ClusterRecord]:
            version = changing.next_version(connection, fence)
            written = [one for record in records if (one := _write(connection, record, version)) is not None]
            ours = {one.id for one in written}
            changing.tell(connection, version, *(note for note in notes if note.cluster in ours or not note.cluster))
            return written

        return await self._database.write(write)

    async def remove(self, cluster: str, note: Note) -> bool:
        def write(connection: sa.Connection) -> bool:
            version = changing.next_version(connection)
            row = connection.execute(sa.select(clusters.c.incarnation).where(clusters.c.id == cluster)).first()
            if row is None:
                return False
            forgetting.forget(connection, cluster, version)
            at = changing.now(connection)
            connection.execute(removed.insert().values(id=cluster, version=version, incarnation=row.incarnation, at=at))
            changing.tell(connection, version, note)
            return True

        return await self._database.write(write)

    async def lives(self, cluster: str) -> int:
        def read(connection: sa.Connection) -> int:
            now = connection.execute(sa.select(clusters.c.incarnation).where(clusters.c.id == cluster)).scalar()
            then = connection.execute(sa.select(removed.c.incarnation).where(removed.c.id == cluster)).scalar()
            return max(now or 0, then or 0)

        return await self._database.read(read)

    async def sighted(self, heard: Sequence[Sighting]) -> None:
        def write(connection: sa.Connection) -> None:
            version = changing.next_version(connection)
            for one in heard:
                if one.reports:
                    changing.tell(connection, version, *_new_reports(connection, one))
            rows = [
                {
                    "cluster": one.cluster,
                    "version": version,
                    "incarnation": one.incarnation,
                    "seen": one.seen,
                    "number": one.number,
                    "run": one.run,
                    "received": max(one.received, *(number for number, _ in one.reports), 0),
                    "writer": self._writer,
                }
                for one in heard
            ]
            bodies = [
                {
                    "cluster": one.cluster,
                    "incarnation": one.incarnation,
                    "name": name,
                    "version": version,
                    "number": number,
                    "body": body,
                    "writer": self._writer,
                }
                for one in heard
                for name, (number, body) in one.sections.items()
            ]
            if bodies:
                _each(connection, _SECTION, bodies)
            _each(connection, _SIGHTED, rows)

        if heard:
            await self._database.write(write)

    async def note(self, *notes: Note, fence: Fence | None = None) -> None:
        def write(connection: sa.Connection) -> None:
            changing.tell(connection, changing.next_version(connection, fence), *notes)

        await self._database.write(write)

    async def changes(self, *, before: int | None = None, cluster: str = "", most: int = 100) -> Sequence[Change]:
        scope = [changes.c.id < before] if before is not None else []
        if cluster:
            scope.append(changes.c.cluster == cluster)
        query = sa.select(changes).where(*scope).order_by(changes.c.id.desc()).limit(most)
        return await self._database.read(lambda connection: [_change(row) for row in connection.execute(query)])

    async def tidy(self, keep_changes: int, fence: Fence) -> None:
        def write(connection: sa.Connection) -> None:
            changing.check(connection, fence)
            _forget_changes(connection, keep_changes)
            connection.execute(turns.delete().where(turns.c.at < changing.now(connection) - _TURNS_FOR))

        await self._database.write(write)


def _forget_changes(connection: sa.Connection, keep: int) -> None:
    """Down to so many: what is more than somebody's share first, then the oldest."""
    whose = sa.case((changes.c.kind.in_(kept_changes.DECIDED), ""), else_=changes.c.cluster)
    told = sa.select(changes.c.id, whose.label("whose")).subquery()
    counts = connection.execute(sa.select(sa.func.count()).select_from(told).group_by(told.c.whose)).scalars().all()
    if sum(counts) <= keep:
        return
    age = sa.func.row_number().over(partition_by=told.c.whose, order_by=told.c.id.desc())
    aged = sa.select(told.c.id, age.label("age")).subquery()
    too_many = sa.select(aged.c.id).where(aged.c.age > kept_changes.share(counts, keep))
    connection.execute(changes.delete().where(changes.c.id.in_(too_many)))
    oldest = sa.select(changes.c.id).order_by(changes.c.id.desc()).offset(keep).limit(1).scalar_subquery()
    connection.execute(changes.delete().where(changes.c.id <= oldest))


def _write(connection: sa.Connection, record: ClusterRecord, version: int) -> ClusterRecord | None:
    new = replace(record, version=version, desired=version if record.desired == NOW else record.desired)
    row = _row(new)
    if record.version == 0:
        if connection.execute(sa.select(clusters.c.id).where(clusters.c.id == record.id)).first() is not None:
            return None
        connection.execute(clusters.insert().values(row))
        connection.execute(removed.delete().where(removed.c.id == record.id))
        return new
    at_version = sa.and_(clusters.c.id == record.id, clusters.c.version == record.version)
    return new if connection.execute(clusters.update().where(at_version).values(row)).rowcount else None


def _row(record: ClusterRecord) -> dict[str, Any]:
    return {
        **{name: getattr(record, name) for name in _PLAIN},
        "told": msgspec.json.encode(record.told).decode(),
        "overrides": msgspec.json.encode(record.overrides).decode(),
        "serials": msgspec.json.encode(record.serials).decode(),
    }


def _record(row: Any) -> ClusterRecord:
    return ClusterRecord(
        **{name: row[name] for name in _PLAIN},
        told=_FACTS.decode(row["told"]),
        overrides=_overrides(row["overrides"]),
        serials=tuple(msgspec.json.decode(row["serials"])),
    )


def _overrides(text: str) -> Mapping[str, Any]:
    """The fields that are there, each of its kind."""
    given = msgspec.json.decode(text)
    if not given:
        return {}
    typed = _FACTS.decode(text)
    return {name: getattr(typed, name) for name in given}


def _each(connection: sa.Connection, statement: sa.TextClause, rows: Sequence[dict[str, Any]]) -> None:
    """Once for each row, handed to the driver as they are: hundreds come twice a second, and what SQLAlchemy would do
    with each costs as much as to write it, while whoever answers requests waits for its turn."""
    plain = connection.dialect.name == "sqlite"  # it knows our way to name parameters
    connection.exec_driver_sql(statement.text if plain else str(statement.compile(connection)), list(rows))


def _new_reports(connection: sa.Connection, one: Sighting) -> list[Note]:
    """Those not written down yet: an answer that got lost brings them a second time. They are known by what they say:
    with a stolen key somebody could use up the numbers."""
    lives = sa.and_(clusters.c.id == one.cluster, clusters.c.incarnation == one.incarnation)
    if connection.execute(sa.select(clusters.c.id).where(lives)).first() is None:
        return []
    notes = {note for _, note in one.reports}
    same = sa.and_(changes.c.cluster == one.cluster, changes.c.at.in_({note.at for note in notes}))
    said = sa.select(changes.c.cluster, changes.c.kind, changes.c.detail, changes.c.at).where(same)
    known = {Note(*row) for row in connection.execute(said)}
    return [note for note in dict.fromkeys(note for _, note in one.reports) if note not in known]


def _change(row: Any) -> Change:
    return Change(id=row.id, at=row.at, cluster=row.cluster, kind=row.kind, detail=row.detail)


def _changes_after(connection: sa.Connection, after: int) -> list[Change]:
    query = sa.select(changes).where(changes.c.version > after).order_by(changes.c.id.desc()).limit(_MOST_NEWS)
    return [_change(row) for row in connection.execute(query)][::-1]


def _others(connection: sa.Connection, after: int) -> frozenset[str]:
    newest = connection.execute(_NEWEST_OTHERS).mappings().one()
    return frozenset(name for name, version in newest.items() if (version or 0) > after)
