"""How are volumes remembered? `storage.VolumeRecords` in the database."""

from dataclasses import asdict

import sqlalchemy as sa
from sqlalchemy import exc

from hansa.storage import Volume, VolumeExists
from hansa.store.database import Database
from hansa.store.tables import volumes


class VolumeStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> list[Volume]:
        query = sa.select(volumes).order_by(volumes.c.namespace, volumes.c.name)
        rows = await self._database.read(lambda connection: connection.execute(query).mappings().all())
        return [Volume(**row) for row in rows]

    async def add(self, volume: Volume) -> None:
        addition = sa.insert(volumes).values(asdict(volume))
        try:
            await self._database.write(lambda connection: connection.execute(addition))
        except exc.IntegrityError:
            raise VolumeExists(f"a volume {volume.name} exists already", hint="choose another name") from None

    async def remove(self, namespace: str, name: str) -> None:
        removal = sa.delete(volumes).where(volumes.c.namespace == namespace, volumes.c.name == name)
        await self._database.write(lambda connection: connection.execute(removal))
