"""What of a store that is only S3? It keeps objects, but makes no users: everybody works through the
manager."""

from hansa.drivers.s3.errors import NoUserAdministration
from hansa.storage import Keys


class NoUsers:
    """The `StoreUsers` port for plain S3. Taking away what cannot exist is fine; giving is refused."""

    async def ensure_user(self, keys: Keys) -> None:
        raise _refusal(keys.access_key)

    async def grant(self, user: str, buckets: frozenset[str], full: frozenset[str] = frozenset()) -> None:
        if buckets:
            raise _refusal(user)

    async def publish(self, buckets: frozenset[str], full: frozenset[str] = frozenset()) -> None:
        if buckets:
            raise _refusal("all users")

    async def remove_user(self, user: str) -> None:
        return

    async def close(self) -> None:
        return


def _refusal(whom: str) -> NoUserAdministration:
    return NoUserAdministration(
        f"this store has no user administration: it cannot make keys for {whom[:80]!r}",
        hint="use the embedded store or MinIO, or let only the administrator use this cluster's storage",
    )
