"""How does a MinIO server lend keys to one run? By its token service: a session with a policy of its own.

All sessions belong to one technical user, which may use every object but nothing else; each session's own policy takes
away all but what its run may touch. A session ends when it is revoked by its name, or after a week by itself.
"""

import asyncio
import hashlib
import hmac
import json
import secrets
from datetime import UTC, datetime
from urllib.parse import SplitResult, urlencode, urlsplit
from xml.etree import ElementTree

from minio.credentials.credentials import Credentials
from minio.signer import sign_v4_s3, sign_v4_sts
from urllib3 import BaseHTTPResponse, PoolManager

from hansa.drivers.s3 import policies
from hansa.drivers.s3.errors import ManagerRefused, StoreUnreachable
from hansa.drivers.s3.minio import MinioConnection
from hansa.kernel.errors import HansaError, Invalid
from hansa.storage import Keys, Reach

_PARENT = "hansa-loans"
_SECONDS = 7 * 86_400  # the longest that MinIO gives
_LARGEST_POLICY = 2048  # bytes; MinIO's own limit
_STS = "{https://sts.amazonaws.com/doc/2011-06-15/}"


class MinioLoans:
    """The `Loans` port for MinIO."""

    def __init__(self, connection: MinioConnection) -> None:
        self._minio = connection
        derived = hmac.new(connection.root.secret_key.encode(), b"loans", hashlib.sha256).hexdigest()
        self._parent = Credentials(_PARENT, derived[:40])
        self._ready = False
        self._turn = asyncio.Lock()

    def new_name(self) -> str:
        return secrets.token_hex(8)

    async def lend(self, name: str, reach: Reach) -> Keys:
        policy = json.dumps(json.loads(policies.reach_document(reach)), separators=(",", ":"))
        if len(policy) > _LARGEST_POLICY:
            raise Invalid(
                "the inputs and outputs of this run are too many for keys of their own",
                hint="give the service fewer outputs, or shorter paths: MinIO takes a policy of 2048 bytes",
            )
        asked = {
            "Action": "AssumeRole",
            "Version": "2011-06-15",
            "DurationSeconds": str(_SECONDS),
            "Policy": policy,
            "TokenRevokeType": _mark(name),
        }
        form = urlencode(asked).encode()
        try:
            await self._make_parent()
            return await self._minio.call("lend keys", lambda: self._assumed(form))
        except ManagerRefused:  # somebody removed the user, or MinIO was brought back from a copy
            self._ready = False
            await self._make_parent()
            return await self._minio.call("lend keys", lambda: self._assumed(form))

    async def end(self, name: str) -> None:
        await self._revoke({"tokenRevokeType": _mark(name)})

    async def end_others(self, alive: frozenset[str]) -> int:
        """MinIO does not tell which sessions there are: if one has to live on, the others run out by themselves."""
        await self._make_parent()  # before anybody else could take its name
        if alive:
            return 0
        await self._revoke({"fullRevoke": "true"})
        return 1

    async def close(self) -> None:
        return  # the connection is the users'

    async def _make_parent(self) -> None:
        async with self._turn:
            if not self._ready:
                admin, parent = self._minio.admin, self._parent
                document = json.loads(policies.every_object())
                await self._minio.call("add a user", lambda: admin.user_add(parent.access_key, parent.secret_key))
                await self._minio.call("write a policy", lambda: admin.policy_add(_PARENT, policy=document))
                await self._minio.call("set a policy", lambda: admin.policy_set(_PARENT, user=_PARENT))
                self._ready = True

    async def _revoke(self, query: dict[str, str]) -> None:
        wanted = urlencode(sorted({**query, "user": _PARENT}.items()))
        await self._minio.call("end keys", lambda: self._revoked(wanted))

    # What follows runs in the connection's threads.

    def _assumed(self, form: bytes) -> Keys:
        answer = self._send("POST", "/", "", form, self._parent, sts=True)
        if answer.status != 200:
            raise _refused("lend keys", answer)
        found = ElementTree.fromstring(answer.data).find(f".//{_STS}Credentials")  # noqa: S314 - of our own store
        parts = [found.findtext(f"{_STS}{name}", "") if found is not None else "" for name in _PARTS]
        if not all(parts):
            raise StoreUnreachable("could not lend keys: MinIO answered without any")
        return Keys(*parts)

    def _revoked(self, query: str) -> None:
        root = Credentials(self._minio.root.access_key, self._minio.root.secret_key)
        answer = self._send("POST", "/minio/admin/v3/revoke-tokens/builtin", query, b"", root)
        # A parent that was never made has no sessions.
        if answer.status not in (200, 204, 404):
            raise _refused("end keys", answer)

    def _send(
        self, method: str, path: str, query: str, body: bytes, who: Credentials, *, sts: bool = False
    ) -> BaseHTTPResponse:
        base, now = urlsplit(self._minio.endpoint), datetime.now(UTC)
        url = SplitResult(base.scheme, base.netloc, path, query, "")
        digest = hashlib.sha256(body).hexdigest()
        headers: dict[str, str | list[str] | tuple[str]] = {
            "Host": url.netloc,
            "x-amz-date": now.strftime("%Y%m%dT%H%M%SZ"),
            "x-amz-content-sha256": digest,
            **({"Content-Type": "application/x-www-form-urlencoded"} if sts else {}),
        }
        sign = sign_v4_sts if sts else sign_v4_s3
        signed = sign(
            method=method,
            url=url,
            region=self._minio.region,
            headers=headers,
            credentials=who,
            content_sha256=digest,
            date=now,
        )
        pool: PoolManager = self._minio.pool
        return pool.request(method, url.geturl(), body=body, headers={key: str(text) for key, text in signed.items()})


_PARTS = ("AccessKeyId", "SecretAccessKey", "SessionToken")


def _mark(name: str) -> str:
    """By which a session is revoked: a word of letters and digits."""
    return hashlib.sha256(name.encode()).hexdigest()[:40]


def _refused(what: str, answer: BaseHTTPResponse) -> HansaError:
    if answer.status >= 500:
        return StoreUnreachable(f"could not {what}: MinIO answered {answer.status}")
    return ManagerRefused(
        f"could not {what}: MinIO answered {answer.status}",
        hint="the keys in the settings must be those of a MinIO administrator",
    )
