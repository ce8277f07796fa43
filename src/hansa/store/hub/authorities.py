"""The roots of trust: implements `federation.Authorities`. Each key is sealed, and opens in its own row only."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from hansa.federation import Authority, Fence, Note
from hansa.identity import Vault, authority
from hansa.store.database import Database
from hansa.store.hub import changing
from hansa.store.hub.tables import authorities
from hansa.store.upsert import upsert

_END = "-----END CERTIFICATE-----\n"


class AuthorityStore:
    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault

    async def all(self) -> Sequence[Authority]:
        query = sa.select(authorities).order_by(authorities.c.since, authorities.c.id)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [self._authority(row) for row in rows]

    async def put(self, changed: Sequence[Authority], note: Note, *, expected: int, fence: Fence | None = None) -> bool:
        rows = [self._row(one) for one in changed]

        def write(connection: sa.Connection) -> bool:
            version = changing.next_version(connection, fence)  # nobody else writes from here to the commit
            newest = connection.execute(sa.select(sa.func.max(authorities.c.version))).scalar() or 0
            if newest != expected:
                return False
            for row in rows:
                upsert(connection, authorities, {**row, "version": version})
            changing.tell(connection, version, note)
            return True

        return await self._database.write(write)

    def _row(self, one: Authority) -> dict[str, Any]:
        gone = one.state == "gone"
        sealed = b"" if gone else self._vault.seal({"key": one.root.key}, purpose=_purpose(one.root.id))
        return {
            "id": one.root.id,
            "state": one.state,
            "certificate": one.root.certificate + one.root.links,
            "sealed": sealed,
            "since": one.since,
        }

    def _authority(self, row: Any) -> Authority:
        first, end, links = row.certificate.partition(_END)
        key = self._vault.open(bytes(row.sealed), purpose=_purpose(row.id))["key"] if row.sealed else ""
        return Authority(authority.Root(row.id, first + end, key, links), row.state, row.since, row.version)


def _purpose(ident: str) -> str:
    return f"authority {ident}"
