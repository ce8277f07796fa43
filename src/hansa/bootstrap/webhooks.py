"""How does a MinIO server tell us of uploads? By calls to one address of ours, about the buckets where services wait.

MinIO learns the address once, for that costs it a restart; what services come and go changes no more than which buckets
it is asked to tell of."""

import asyncio
import hashlib
import hmac
from collections.abc import Callable, Iterable

import structlog

from hansa import services, storage
from hansa.drivers import s3
from hansa.kernel.errors import HansaError, Temporary
from hansa.settings import Settings

PATH = "/v1/store/uploads"
_log = structlog.get_logger("hansa.uploads")
_AGAIN_EVERY = 60.0  # seconds; somebody may have changed MinIO by hand
_PATIENCE = 5.0  # seconds that whoever writes a service waits for MinIO


class Webhook:
    """The `services.Webhook` of a manager whose store is a MinIO."""

    def __init__(
        self,
        notifications: storage.Notifications,
        cluster: str,
        url: str,
        root: storage.Keys,
        known: services.Services,
        patience: float = _PATIENCE,
    ) -> None:
        self._notifications = notifications
        self._name = f"hansa-{hashlib.sha256(cluster.encode()).hexdigest()[:16]}"
        self._url = f"{url.rstrip('/')}{PATH}"
        self._known = known
        self._patience = patience
        self.token = hmac.new(root.secret_key.encode(), f"uploads {cluster}".encode(), hashlib.sha256).hexdigest()
        self._listening = services.Listening()
        self._complaints = services.Complaints()
        self._turns = storage.Turns()
        self._wake = asyncio.Event()
        self._looked = False

    async def refresh(self, buckets: Iterable[str]) -> None:
        told = frozenset(buckets)
        try:
            async with asyncio.timeout(self._patience):
                for bucket in told:
                    await self._tell(bucket)
        except (TimeoutError, HansaError) as error:
            why = error.message if isinstance(error, HansaError) else f"no answer within {self._patience:g} s"
            _log.warning("MinIO is not told yet what to tell of", buckets=sorted(told), error=why)
            self._wake.set()

    async def work(self, on_gap: Callable[[], None]) -> None:
        if not self._looked:
            on_gap()  # whatever was uploaded before, nobody told us of it
        self._looked = True
        while True:
            self._wake.clear()
            if await self._notifications.announce(self._name, self._url, self.token):
                _log.info("MinIO knows where to tell of uploads", url=self._url)
                on_gap()
            there = self._known.all()
            self._listening.forget_others(record.service.name for record in there)
            for bucket in self._listening.buckets(there):
                if await self._try_tell(bucket):
                    on_gap()
            try:
                async with asyncio.timeout(_AGAIN_EVERY):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _try_tell(self, bucket: str) -> bool:
        """One bucket that makes trouble keeps no other from being told of; only a MinIO that is away ends the round."""
        try:
            news = await self._tell(bucket)
        except Temporary:
            raise
        except HansaError as error:
            self._complaints.tell("MinIO cannot be told what to tell of", bucket, error, bucket=bucket)
            return False
        self._complaints.passed(bucket)
        return news

    async def _tell(self, bucket: str) -> bool:
        async with self._turns.hold([bucket]):  # what services want is what they want when MinIO is told
            there = self._listening.of_bucket(bucket, self._known.all())
            wanted = any(record.phase == "ready" for record in there)
            return await self._notifications.listen(self._name, bucket, wanted)


def of(given: Settings, opened: s3.OpenStore, known: services.Services) -> Webhook | None:
    if opened.notifications is None:
        return None
    here = given.cluster.public_url or f"http://{given.http.host}:{given.http.port}"
    return Webhook(opened.notifications, given.cluster.id, here, opened.keys, known)
