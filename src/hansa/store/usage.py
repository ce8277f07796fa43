"""Who used what? Requests and CPU time added up in the database, so that an answer never holds single rows."""

from collections.abc import Sequence

import sqlalchemy as sa

from hansa.resources import Invocation, Requests
from hansa.store.database import Database
from hansa.store.tables import invocations, jobs

_MOST_NAMES = 10_000  # in one list of a statement; SQLite takes no more than 32,766
_REFUSED = (401, 403, 404)  # such a call to /job or /run never reached a service


class UsageStore:
    """`resources.UsageRecords` in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def requests(
        self, start: float, end: float, services: frozenset[str] | None, most: int
    ) -> Sequence[Requests]:
        table = invocations.c
        query = (
            sa.select(table.service, table.user, table.kind, sa.func.sum(table.calls))
            .where(table.at >= start, table.at <= end, _among(table.service, services))
            .where(sa.or_(table.kind == "exposed", table.status.not_in(_REFUSED)))
            .group_by(table.service, table.user, table.kind)
            .order_by(sa.func.sum(table.calls).desc(), table.service, table.user, table.kind)
            .limit(most)
        )
        rows = await self._database.read_long(lambda connection: connection.execute(query).all())
        found = [Requests(service, user, kind, int(count)) for service, user, kind, count in rows]
        return [one for one in found if services is None or one.service in services]

    async def cpu_seconds(self, start: float, end: float, services: frozenset[str] | None) -> float:
        query = (
            sa.select(jobs.c.service, sa.func.sum(jobs.c.cpu_seconds))
            .where(jobs.c.finished >= start, jobs.c.finished <= end, _among(jobs.c.service, services))
            .group_by(jobs.c.service)
        )
        rows = await self._database.read_long(lambda connection: connection.execute(query).all())
        return float(sum(seconds for service, seconds in rows if services is None or service in services))

    async def latest(self, most: int) -> Sequence[Invocation]:
        table = invocations.c
        query = sa.select(
            table.at, table.kind, table.service, table.user, table.status,
            table.latency, table.client_ip, table.method, table.path,
        ).order_by(table.id.desc()).limit(most)  # fmt: skip
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [Invocation(*row) for row in rows]


def _among(column: sa.Column[str], services: frozenset[str] | None) -> sa.ColumnElement[bool]:
    if services is None or len(services) > _MOST_NAMES:
        return sa.true()  # the few who see more than that are sorted out afterwards
    return column.in_(sorted(services))
