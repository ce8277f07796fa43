"""How does a MinIO server tell us of uploads?"""

import hashlib
import hmac
from collections.abc import Iterable, Sequence

from hansa import storage
from hansa.drivers import s3
from hansa.settings import Settings


class Webhook:
    """Where a MinIO server tells of uploads: our own `/job`, with a token of the store for that service."""

    def __init__(self, notifications: storage.Notifications, public_url: str, root: storage.Keys) -> None:
        self._notifications = notifications
        self._public_url = public_url.rstrip("/")
        self._secret = root.secret_key.encode()

    def token(self, service: str) -> str:
        return hmac.new(self._secret, f"webhook {service}".encode(), hashlib.sha256).hexdigest()

    async def register(self, service: str, folders: Sequence[tuple[str, str]], former: Iterable[str] = ()) -> None:
        by_bucket: dict[str, set[str]] = {bucket: set() for bucket in former}
        for bucket, folder in folders:
            by_bucket.setdefault(bucket, set()).add(f"{folder}/")
        frozen = {bucket: frozenset(prefixes) for bucket, prefixes in by_bucket.items()}
        await self._notifications.register(service, f"{self._public_url}/job/{service}", self.token(service), frozen)

    async def unregister(self, service: str, buckets: frozenset[str]) -> None:
        await self._notifications.unregister(service, buckets)


def of(given: Settings, opened: s3.OpenStore) -> Webhook | None:
    if opened.notifications is None:
        return None
    here = given.cluster.public_url or f"http://{given.http.host}:{given.http.port}"
    return Webhook(opened.notifications, here, opened.keys)
