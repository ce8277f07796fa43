"""How do we administer a MinIO server? Its users, their policies, and the webhooks that tell of uploads.

`MinioUsers` and `MinioNotifications` share one `MinioAdmin` connection; minio-py blocks, so its calls run
in a few threads of their own. The contract suites run against a live MinIO where one is at hand
(tests/real/minio.py)."""

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import urlsplit

import urllib3
from minio import Minio, MinioAdmin
from minio.credentials.providers import StaticProvider
from minio.error import MinioAdminException, MinioException, S3Error
from minio.notificationconfig import NotificationConfig, PrefixFilterRule, QueueConfig

from hansa.drivers.s3 import policies
from hansa.drivers.s3.errors import StoreUnreachable
from hansa.kernel.errors import Conflict, Forbidden, HansaError, Invalid, NotFound
from hansa.storage import Keys, StoreAddress

T = TypeVar("T")

_GROUP = "hansa-users"
_WORD = re.compile(r"[!-~]+")  # MinIO's configuration is a line of words
_TARGET = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_OURS = "hansa-"
_RESTART_SECONDS = 30.0


class MinioConnection:
    """One administrator's connection, shared by the two ports below."""

    def __init__(self, address: StoreAddress, keys: Keys) -> None:
        self.root = keys
        self.endpoint, self.region = address.endpoint, address.region or "us-east-1"
        where = urlsplit(address.endpoint)
        self.pool = pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=3.0, read=15.0),
            retries=urllib3.Retry(total=2, backoff_factor=0.2),
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
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="minio")

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
            document = json.loads(policies.document(buckets, full))
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
        self._alone = asyncio.Lock()  # notifications of a bucket are read, changed and written back as a whole

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
            await self._minio.call("write a webhook", lambda: admin.config_set(f"notify_webhook:{caller}", wanted))
            await self._restart(caller, url, comment)
        return True

    async def listen(self, caller: str, bucket: str, prefixes: frozenset[str]) -> bool:
        async with self._alone:
            arns = await self._arns()
            arn = _arn_of(caller, arns)
            if prefixes and not arn:
                raise StoreUnreachable(f"MinIO does not know {caller} yet", hint="it is told so as soon as it can be")
            try:
                return await self._notify(bucket, arn, prefixes, arns)
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

    async def _notify(self, bucket: str, arn: str, prefixes: frozenset[str], arns: frozenset[str]) -> bool:
        """Gives the bucket exactly these notifications for the target, and leaves those of others; those of targets
        that are gone MinIO takes from nobody."""
        client = self._minio.buckets
        config = await self._minio.call(
            f"read the notifications of {bucket}", lambda: client.get_bucket_notification(bucket)
        )
        there = config.queue_config_list or []
        if all(each.queue in arns for each in there) and prefixes == frozenset(
            _prefix_of(each) for each in there if each.queue == arn
        ):
            return False
        others = [each for each in there if each.queue != arn and each.queue in arns]
        ours = [
            QueueConfig(["s3:ObjectCreated:*"], prefix_filter_rule=_below(prefix), queue=arn)
            for prefix in sorted(prefixes)
        ]
        changed = NotificationConfig(config.cloud_func_config_list, others + ours, config.topic_config_list)
        await self._minio.call(
            f"write the notifications of {bucket}", lambda: client.set_bucket_notification(bucket, changed)
        )
        return True


def _arn_of(caller: str, arns: frozenset[str]) -> str:
    return next((arn for arn in arns if arn.endswith(f":{caller}:webhook")), "")


def _webhooks(admin: MinioAdmin) -> str:
    """The targets the server runs with, one a line, without their tokens."""
    try:
        return admin.config_get("notify_webhook")
    except UnboundLocalError as error:  # minio-py's own slip when a request fails; the reason stands behind it
        raise error.__context__ or error from None


def _prefix_of(config: QueueConfig) -> str:
    return config.prefix_filter_rule.value if config.prefix_filter_rule else ""


def _below(prefix: str) -> PrefixFilterRule | None:
    return PrefixFilterRule(prefix) if prefix else None


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
    if code in {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"} or status == 403:
        return Forbidden(message, hint="the keys in the settings must be those of a MinIO administrator")
    if what == "write a webhook":
        return StoreUnreachable(message, hint="MinIO must reach the manager's URL before it accepts a webhook")
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
