"""Tokens to join: implements `federation.Tokens`. What is kept cannot be used to join."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from hansa.federation import Fence, Note, TokenRecord
from hansa.store.database import Database
from hansa.store.hub import changing
from hansa.store.hub.tables import tokens


class TokenStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, token: TokenRecord, note: Note) -> None:
        def write(connection: sa.Connection) -> None:
            version = changing.next_version(connection)
            connection.execute(tokens.insert().values(asdict(token)))
            changing.tell(connection, version, note)

        await self._database.write(write)

    async def get(self, ident: str) -> TokenRecord | None:
        query = sa.select(tokens).where(tokens.c.id == ident)
        row = await self._database.read(lambda connection: connection.execute(query).mappings().one_or_none())
        return None if row is None else _token(row)

    async def all(self) -> Sequence[TokenRecord]:
        query = sa.select(tokens).order_by(tokens.c.created, tokens.c.id)
        return await self._database.read(
            lambda connection: [_token(row) for row in connection.execute(query).mappings()]
        )

    async def use(self, ident: str, *, cluster: str, key: str, life: int) -> bool:
        def write(connection: sa.Connection) -> bool:
            at = changing.now(connection)
            # In one statement: of two at the same time the later one waits, and then finds it used.
            good = sa.and_(tokens.c.id == ident, tokens.c.used.is_(None), tokens.c.expires > at)
            using = tokens.update().where(good).values(used_by=cluster, used=at, used_key=key, life=life)
            return bool(connection.execute(using).rowcount)

        return await self._database.write(write)

    async def revoke(self, ident: str, note: Note) -> bool:
        def write(connection: sa.Connection) -> bool:
            version = changing.next_version(connection)
            if not connection.execute(tokens.delete().where(tokens.c.id == ident)).rowcount:
                return False
            changing.tell(connection, version, note)
            return True

        return await self._database.write(write)

    async def forget(self, expired_before: float, fence: Fence) -> int:
        def write(connection: sa.Connection) -> int:
            changing.check(connection, fence)
            return connection.execute(tokens.delete().where(tokens.c.expires < expired_before)).rowcount

        return await self._database.write(write)


def _token(row: Any) -> TokenRecord:
    return TokenRecord(**row)
