"""How does the hub's database change? Every write takes the next version first, and holds it until its commit.

So versions are seen in the order of their commits, and periodic work writes only while its lease is its own.
"""

import time

import sqlalchemy as sa

from hansa.federation import Fence, Note, errors
from hansa.store.hub.tables import changes, leases, versions

COUNTED, RESTORED = 1, 2  # the rows of `hub_versions`: where we are, and where we were when a backup was restored
_NEXT = (
    versions.update()
    .where(versions.c.id == COUNTED)
    .values(version=versions.c.version + 1)
    .returning(versions.c.version)
)
_POSTGRES_NOW = sa.text("select extract(epoch from clock_timestamp())::float8")
# There is one process on SQLite, and its time goes on evenly whatever happens to the machine's clock.
_BEGAN = time.time() - time.monotonic()


def now(connection: sa.Connection) -> float:
    """The clock all hubs of this database go by."""
    if connection.dialect.name == "sqlite":
        return _BEGAN + time.monotonic()
    return float(connection.execute(_POSTGRES_NOW).scalar_one())


def next_version(connection: sa.Connection, fence: Fence | None = None) -> int:
    """Whoever holds this row's lock writes; the fence is looked at behind it, so nobody can take the work meanwhile."""
    version = int(connection.execute(_NEXT).scalar_one())
    if fence is not None:
        check(connection, fence)
    return version


def stand_still(connection: sa.Connection) -> None:
    """Nobody takes a version until the commit. To be called before `check`: all take these two locks in this order."""
    connection.execute(sa.select(versions.c.version).where(versions.c.id == COUNTED).with_for_update())


def check(connection: sa.Connection, fence: Fence) -> None:
    row = connection.execute(sa.select(leases).where(leases.c.work == fence.work).with_for_update()).first()
    held = row is not None and (row.holder, row.epoch) == (fence.holder, fence.epoch)
    if row is None or not held or row.expires <= now(connection):
        raise errors.LeaseLost(f"another hub does {fence.work} now", hint="nothing to do; it goes on there")


def tell(connection: sa.Connection, version: int, *notes: Note) -> None:
    if not notes:
        return
    at = now(connection)
    rows = [
        {
            "version": version,
            "at": note.at if note.at is not None else at,
            "cluster": note.cluster,
            "kind": note.kind,
            "detail": note.detail,
        }
        for note in notes
    ]
    connection.execute(changes.insert(), rows)
