"""What the hub shows to clusters it asks itself, kept sealed. `ClusterStore.put` writes it along with its cluster."""

import sqlalchemy as sa

from hansa.identity import Vault
from hansa.store.database import Database
from hansa.store.hub.tables import credentials


class CredentialStore:
    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault

    def sealed(self, cluster: str, values: dict[str, str]) -> bytes:
        return self._vault.seal(values, purpose=f"cluster {cluster}")

    async def get(self, cluster: str) -> dict[str, str] | None:
        query = sa.select(credentials.c.sealed).where(credentials.c.cluster == cluster)
        sealed = await self._database.read(lambda connection: connection.execute(query).scalar())
        return None if sealed is None else self._vault.open(bytes(sealed), purpose=f"cluster {cluster}")
