"""How do we administer a MinIO server? Its users, their policies, and the webhooks that tell of uploads.

`MinioUsers` and `MinioNotifications` share one `MinioAdmin` connection; minio-py blocks, so its calls run
in a few threads of their own. The contract suites run against a live MinIO where one is at hand
(tests/real/minio.py)."""

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import urlsplit

import urllib3
from minio import Minio, MinioAdmin
from minio.credentials.providers import StaticProvider
from minio.error import MinioAdminException, MinioException, S3Error
from minio.notificationconfig import NotificationConfig, QueueConfig

from hansa.drivers.s3 import policies
from hansa.drivers.s3.errors import ManagerRefused, StoreUnreachable
from hansa.kernel.errors import Conflict, HansaError, Invalid, NotFound
from hansa.storage import Keys, StoreAddress

T = TypeVar("T")

_GROUP = "hansa-users"
_WORD = re.compile(r"[!-~]+")  # MinIO's configuration is a line of words
_TARGET = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_OURS = "hansa-"
_RESTART_SECONDS = 30.0
_THREADS = 4


class MinioConnection:
    """One administrator's connection, shared by the two ports below."""

    def __init__(self, address: StoreAddress, keys: Keys) -> None:
        self.root = keys
        self.endpoint, self.region = address.endpoint, address.region or "us-east-1"
        where = urlsplit(address.endpoint)
        self.pool = pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=3.0, read=15.0),
            # read once more: a connection that was kept may be one of a server that was restarted
            retries=urllib3.Retry(total=2, read=1, backoff_factor=0.2),
            maxsize=_THREADS,
            cert_reqs="CERT_REQUIRED" if address.verify else "CERT_NONE",
        )
        provider = StaticProvider(keys.access_key, keys.secret_key)
        secure = where.scheme == "https"
        self.admin = MinioAdmin(
            endpoint=where.netloc,
            credentials=provider,
            region=address.region,
            secure=secure,
            cert_check=address.verify,
            http_client=pool,
        )
        self.buckets = Minio(
            endpoint=where.netloc,
            credentials=provider,
            region=address.region or None,
            secure=secure,
            cert_check=address.verify,
            http_client=pool,
        )
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="minio")

    async def call(self, what: str, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except (MinioAdminException, MinioException, urllib3.exceptions.HTTPError, ValueError) as error:
            raise _translated(error, what) from error

    async def forgiving(self, what: str, work: Callable[[], object]) -> None:
        try:
            await self.call(what, work)
        except NotFound:
            return

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class MinioUsers:
    """The `StoreUsers` port for MinIO: a policy per user, and a group of all users for the published
    buckets."""

    def __init__(self, connection: MinioConnection) -> None:
        self._minio = connection

    async def ensure_user(self, keys: Keys) -> None:
        policies.require_user(keys, self._minio.root.access_key)
        admin, user = self._minio.admin, keys.access_key
        await self._minio.call("add a user", lambda: admin.user_add(user, keys.secret_key))
        await self._join([user])

    async def grant(self, user: str, buckets: frozenset[str], full: frozenset[str] = frozenset()) -> None:
        await self._allow(policies.name_of(user), buckets, full, user=user)

    async def publish(self, buckets: frozenset[str], full: frozenset[str] = frozenset()) -> None:
        await self._join([])  # the group exists from now on
        await self._allow(policies.PUBLISHED, buckets, full, group=_GROUP)

    async def remove_user(self, user: str) -> None:
        admin, policy = self._minio.admin, policies.name_of(user)
        await self._minio.forgiving("remove a user", lambda: admin.user_remove(user))
        await self._minio.forgiving("remove a policy", lambda: admin.policy_remove(policy))

    async def close(self) -> None:
        await self._minio.close()

    async def _join(self, users: list[str]) -> None:
        # minio-py asks for a string, the server for a list
        members: Any = users
        await self._minio.call("fill a group", lambda: self._minio.admin.group_add(_GROUP, members))

    async def _allow(self, policy: str, buckets: frozenset[str], full: frozenset[str], **whom: str) -> None:
        admin = self._minio.admin
        if buckets:
            document = json.loads(policies.objects_only(policies.document(buckets, full)))
            await self._minio.call("write a policy", lambda: admin.policy_add(policy, policy=document))
            await self._minio.call("set a policy", lambda: admin.policy_set(policy, **whom))
        else:  # MinIO refuses a policy without statements
            await self._minio.call("take a policy away", lambda: admin.policy_set("", **whom))
            await self._minio.forgiving("remove a policy", lambda: admin.policy_remove(policy))


class MinioNotifications:
    """The `Notifications` port for MinIO: a webhook target for each of our managers, and bucket notifications that name
    it.

    MinIO reads targets only when it starts, so a new or changed one costs a restart of the server (half a second
    without answers); it also knocks at the URL before accepting it, so the manager must already listen there.
    Without a queue folder of its own MinIO drops what it cannot deliver: the reconciliation listing finds it.
    """

    def __init__(self, connection: MinioConnection) -> None:
        self._minio = connection
        self._alone = asyncio.Lock()

    async def announce(self, caller: str, url: str, token: str) -> bool:
        if not (_TARGET.fullmatch(caller) and _WORD.fullmatch(url) and _WORD.fullmatch(token)):
            raise Invalid(f"cannot notify {caller[:80]!r}", hint="check its name, URL and token")
        admin = self._minio.admin
        # The server never shows a token again, so its digest stands in the comment, to notice a changed one.
        comment = f"{_OURS}{hashlib.sha256(token.encode()).hexdigest()[:24]}"
        wanted = {"endpoint": url, "auth_token": token, "comment": comment}
        async with self._alone:
            running = await self._minio.call("read the webhooks", lambda: _webhooks(admin))
            if _runs_with(running, caller, url, comment) and _arn_of(caller, await self._arns()):
                return False
            try:
                await self._minio.call("write a webhook", lambda: admin.config_set(f"notify_webhook:{caller}", wanted))
            except Conflict as error:
                raise StoreUnreachable(
                    f"MinIO does not take {url} as the address to tell of uploads: {error.message}",
                    hint="MinIO must reach the manager there: set cluster.public_url to an address that it reaches",
                ) from error
            await self._restart(caller, url, comment)
        return True

    async def listen(self, caller: str, bucket: str, wanted: bool) -> bool:
        try:
            return await self._notify(caller, bucket, wanted)
        except NotFound:
            return False

    async def close(self) -> None:
        await self._minio.close()

    async def _restart(self, caller: str, url: str, comment: str) -> None:
        """Returns when MinIO runs with exactly this target."""
        admin = self._minio.admin
        await self._minio.call("restart MinIO", admin.service_restart)
        deadline = time.monotonic() + _RESTART_SECONDS
        while time.monotonic() < deadline:
            await asyncio.sleep(0.1)
            try:
                now = await self._minio.call("read the webhooks", lambda: _webhooks(admin))
                if _runs_with(now, caller, url, comment) and _arn_of(caller, await self._arns()):
                    return
            except StoreUnreachable:
                continue
        raise StoreUnreachable(
            f"MinIO did not load the webhook of {caller} within {_RESTART_SECONDS:g} s",
            hint="restart MinIO and look at its log",
        )

    async def _arns(self) -> frozenset[str]:
        """Of all targets the server runs with, whosever they are."""
        info = json.loads(await self._minio.call("read MinIO's state", self._minio.admin.info))
        return frozenset(info.get("sqsARN") or [])

    async def _notify(self, caller: str, bucket: str, wanted: bool) -> bool:
        """The bucket has one notification of ours, for all that is uploaded, or none. Those of others stay; those of
        targets that are gone MinIO takes from nobody."""
        client = self._minio.buckets
        config = await self._minio.call(
            f"read the notifications of {bucket}", lambda: client.get_bucket_notification(bucket)
        )
        there = config.queue_config_list or []
        ours = [each for each in there if _arn_of(caller, [each.queue or ""])]
        if _is_of_all(ours) if wanted else not ours:
            return False
        arns = await self._arns()  # of this moment: an order of somebody whom we do not know would be lost for good
        arn = _arn_of(caller, arns)
        if wanted and not arn:
            raise StoreUnreachable(f"MinIO does not know {caller} yet", hint="it is told so as soon as it can be")
        others = [each for each in there if each not in ours and each.queue in arns]
        mine = [QueueConfig(["s3:ObjectCreated:*"], queue=arn)] if wanted else []
        changed = NotificationConfig(config.cloud_func_config_list, others + mine, config.topic_config_list)
        await self._minio.call(
            f"write the notifications of {bucket}", lambda: client.set_bucket_notification(bucket, changed)
        )
        return True


def _arn_of(caller: str, arns: Iterable[str]) -> str:
    return next((arn for arn in arns if arn.endswith(f":{caller}:webhook")), "")


def _webhooks(admin: MinioAdmin) -> str:
    """The targets the server runs with, one a line, without their tokens."""
    try:
        return admin.config_get("notify_webhook")
    except UnboundLocalError as error:  # minio-py's own slip when a request fails; the reason stands behind it
        raise error.__context__ or error from None


def _is_of_all(ours: list[QueueConfig]) -> bool:
    """Whether it is one order, and no folder in it: earlier releases named those."""
    return len(ours) == 1 and ours[0].prefix_filter_rule is None and ours[0].suffix_filter_rule is None


def _runs_with(config: str, caller: str, url: str, comment: str) -> bool:
    """Whether the running server's configuration has this target; it prints one target a line."""
    for line in config.splitlines():
        name, *words = line.split()
        if name == f"notify_webhook:{caller}":
            values = {word.replace('"', "") for word in words}
            return {f"endpoint={url}", f"comment={comment}"} <= values
    return False


def _translated(error: Exception, what: str) -> HansaError:
    # The server's own text may repeat the request, and with it a secret: only its code goes on.
    if isinstance(error, S3Error):
        code, status = str(error.code), 404 if str(error.code).startswith("NoSuch") else 400
    elif isinstance(error, MinioAdminException):
        code, status = _admin_code(error)
    else:
        return StoreUnreachable(
            f"could not {what}: MinIO does not answer ({type(error).__name__})",
            hint="check that MinIO runs and that its endpoint is right",
        )
    message = f"could not {what}: {code}"
    if status == 404:
        return NotFound(message)
    if code == "XMinioInvalidIAMCredentials":
        return Conflict(message, hint="MinIO has a service account of this name: `mc admin user svcacct rm` removes it")
    if code in {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"} or status == 403:
        return ManagerRefused(message, hint="the keys in the settings must be those of a MinIO administrator")
    if status >= 500:
        return StoreUnreachable(message, hint="MinIO has trouble now; trying again can help")
    return Conflict(message, hint="look at MinIO's log")


def _admin_code(error: MinioAdminException) -> tuple[str, int]:
    """minio-py keeps the answer in private attributes; its text is the public form of the same."""
    found = re.search(r"Status: (\d+), Body: (.*)", str(error), re.DOTALL)
    if found is None:
        return "Unknown", 500
    try:
        return str(json.loads(found[2])["Code"]), int(found[1])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {found[1]}", int(found[1])
