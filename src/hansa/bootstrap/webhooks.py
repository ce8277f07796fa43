"""How does a MinIO server tell us of uploads? By calls to one address of ours, about the folders that services have.

MinIO learns the address once, for that costs it a restart; what services come and go changes no more than what it is
asked to tell."""

import asyncio
import hashlib
import hmac
from collections.abc import Callable, Iterable

import structlog

from hansa import services, storage
from hansa.drivers import s3
from hansa.kernel.errors import HansaError
from hansa.settings import Settings

PATH = "/v1/store/uploads"
_log = structlog.get_logger("hansa.uploads")
_AGAIN_EVERY = 60.0  # seconds; somebody may have changed MinIO by hand


class Webhook:
    """The `services.Webhook` of a manager whose store is a MinIO."""

    def __init__(
        self, notifications: storage.Notifications, cluster: str, url: str, root: storage.Keys, known: services.Services
    ) -> None:
        self._notifications = notifications
        self._name = f"hansa-{hashlib.sha256(cluster.encode()).hexdigest()[:16]}"
        self._url = f"{url.rstrip('/')}{PATH}"
        self._known = known
        self.token = hmac.new(root.secret_key.encode(), f"uploads {cluster}".encode(), hashlib.sha256).hexdigest()
        self._turn = asyncio.Lock()
        self._wake = asyncio.Event()

    async def refresh(self, buckets: Iterable[str]) -> None:
        for bucket in frozenset(buckets):
            try:
                await self._tell(bucket)
            except HansaError as error:
                _log.warning("MinIO is not told yet what to tell of", bucket=bucket, error=error.message)
                self._wake.set()

    async def work(self, on_gap: Callable[[], None]) -> None:
        while True:
            self._wake.clear()
            if await self._notifications.announce(self._name, self._url, self.token):
                _log.info("MinIO knows where to tell of uploads", url=self._url)
            if any([await self._tell(bucket) for bucket in services.folders_of_all(self._known.all())]):
                on_gap()
            try:
                async with asyncio.timeout(_AGAIN_EVERY):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _tell(self, bucket: str) -> bool:
        async with self._turn:  # the folders are those of the moment in which MinIO is told
            prefixes = services.folders_of_all(self._known.all()).get(bucket, ())
            return await self._notifications.listen(self._name, bucket, frozenset(prefixes))


def of(given: Settings, opened: s3.OpenStore, known: services.Services) -> Webhook | None:
    if opened.notifications is None:
        return None
    here = given.cluster.public_url or f"http://{given.http.host}:{given.http.port}"
    return Webhook(opened.notifications, given.cluster.id, here, opened.keys, known)
