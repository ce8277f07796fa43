"""How are buckets remembered? `storage.BucketRecords` in the database."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from hansa.storage import Bucket, BucketExists
from hansa.store.database import Database
from hansa.store.tables import buckets


class BucketStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> list[Bucket]:
        query = sa.select(buckets).order_by(buckets.c.name)
        rows = await self._database.read(lambda connection: connection.execute(query).mappings().all())
        return [Bucket(**{**row, "allowed_users": tuple(json.loads(row["allowed_users"]))}) for row in rows]

    async def add(self, fresh: Sequence[Bucket]) -> None:
        rows = [_row(bucket) for bucket in fresh]
        try:
            await self._database.write(lambda connection: connection.execute(sa.insert(buckets), rows))
        except exc.IntegrityError:
            names = ", ".join(bucket.name for bucket in fresh)
            raise BucketExists(f"a bucket already exists: {names}", hint="choose another name") from None

    async def replace(self, bucket: Bucket) -> None:
        change = sa.update(buckets).where(buckets.c.name == bucket.name).values(_row(bucket))
        await self._database.write(lambda connection: connection.execute(change))

    async def remove(self, name: str) -> None:
        removal = sa.delete(buckets).where(buckets.c.name == name)
        await self._database.write(lambda connection: connection.execute(removal))


def _row(bucket: Bucket) -> dict[str, Any]:
    return {**asdict(bucket), "allowed_users": json.dumps(bucket.allowed_users)}
