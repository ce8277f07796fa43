"""How members show what we gave them, remembered over restarts; when they were last seen, only until the next one."""

import hashlib
import json
from collections.abc import Sequence, Set

import sqlalchemy as sa

from hansa.services import Shown
from hansa.store import in_turn
from hansa.store.database import Database
from hansa.store.tables import sightings as table
from hansa.store.upsert import upsert

_Key = tuple[str, str]  # service, member


class SightingStore:
    """Kept in memory too: every pass over all members asks for it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._seen: dict[_Key, float] = {}
        self._shown: dict[_Key, Shown] = {}

    async def load(self) -> None:
        rows = await self._database.read(lambda c: c.execute(sa.select(table)).mappings().all())
        for row in rows:
            self._shown[row["service"], json.loads(row["member"])] = Shown(row["definition"], json.loads(row["parts"]))

    def note(self, service: str, member: str, now: float) -> None:
        self._seen[service, member] = now

    def last(self, service: str, member: str) -> float | None:
        return self._seen.get((service, member))

    def shown(self, service: str, member: str) -> Shown | None:
        return self._shown.get((service, member))

    async def keep(self, service: str, member: str, shown: Shown | None) -> None:
        if shown == self._shown.get((service, member)):
            return
        if shown is None:
            await self._remove({(service, member)})
            return
        row = {
            "mark": _mark(service, member),
            "service": service,
            "member": json.dumps(member),
            "definition": shown.definition,
            "parts": json.dumps(dict(shown.parts)),
        }
        await self._database.write(lambda c: upsert(c, table, row))
        self._shown[service, member] = shown

    async def forget_others(self, members: Set[_Key]) -> None:
        for key in self._seen.keys() - members:
            del self._seen[key]
        if gone := self._shown.keys() - members:
            await self._remove(gone)

    async def _remove(self, keys: Set[_Key]) -> None:
        def write(some: Sequence[_Key], connection: sa.Connection) -> None:
            connection.execute(table.delete().where(table.c.mark.in_([_mark(*key) for key in some])))

        await in_turn.write(self._database, list(keys), write, lambda key: self._shown.pop(key, None))


def _mark(service: str, member: str) -> str:
    return hashlib.sha256(f"{service}\0{member}".encode()).hexdigest()
