"""What the hub shows to clusters it asks itself, kept sealed."""

import sqlalchemy as sa

from hansa.identity import Vault
from hansa.store.database import Database
from hansa.store.hub.tables import credentials
from hansa.store.upsert import upsert


class CredentialStore:
    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault

    async def remember(self, cluster: str, values: dict[str, str]) -> None:
        row = {"cluster": cluster, "sealed": self._vault.seal(values, purpose=f"cluster {cluster}")}
        await self._database.write(lambda connection: upsert(connection, credentials, row))

    async def get(self, cluster: str) -> dict[str, str] | None:
        query = sa.select(credentials.c.sealed).where(credentials.c.cluster == cluster)
        sealed = await self._database.read(lambda connection: connection.execute(query).scalar())
        return None if sealed is None else self._vault.open(bytes(sealed), purpose=f"cluster {cluster}")
