"""How are objects read and written in an S3 store? The few calls that moving files takes, for any such store."""

import contextlib
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from . import sigv4
from .errors import NotYet, Refused, Trouble
from .plan import Store
from .web import CHUNK, Answer, Body, Dial, Server, Web

_AWS = "https://s3.{region}.amazonaws.com"
DEFAULT_REGION = "us-east-1"
_REGION = re.compile(r"[a-z0-9-]{1,64}")
_PART = 16 * 2**20
_MOST_PARTS = 10_000
_UNHEARD = {"InvalidAccessKeyId", "AccessDenied"}
_LATER = {"SlowDown", "RequestTimeout", "ServiceUnavailable", "InternalError", "Throttling"}


Sign = Callable[[str, str, str, Mapping[str, str], str], Mapping[str, str]]
"""The headers for a request: its method, bucket, key, query, and the digest of its body."""


Note = Callable[[str], None]
"""Hears by which name the store knows an upload."""


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list of objects."""

    keys: tuple[str, ...]
    following: str  # the token of the next part; empty if there is none


class S3:
    """One store, with the keys of the plan, or with `sign` where the plan has none."""

    def __init__(self, store: Store, dial: Dial, sign: Sign | None = None, part: int = _PART) -> None:
        self._store = store
        self._sign = sign
        if store.region and not _REGION.fullmatch(store.region):
            raise Refused("the region of the store is not valid: small letters, digits and dashes")
        self._web = Web(server_of(store), dial, verify=store.verify)
        self._part = part

    def close(self) -> None:
        self._web.close()

    def download(self, bucket: str, key: str, into: int, room: Callable[[int], None] = lambda length: None) -> None:
        path = self._path(bucket, key)
        answer = self._web.fetch(path, self._headers("GET", bucket, key, {}, sigv4.EMPTY), into, room)
        if answer.status != 200:
            raise self._trouble(answer)

    def upload(self, bucket: str, key: str, fd: int, size: int, note: Note = lambda begun: None) -> None:
        """`note` hears of an upload in parts: until it is complete or aborted, the store keeps what came of it."""
        if size > 2 * self._part:
            self._in_parts(bucket, key, fd, size, note)
        else:
            self._ask("PUT", bucket, key, body=Body(fd, 0, size))

    def page(self, bucket: str, prefix: str, token: str = "") -> "Page":
        """Some of the keys that begin so: the first ones, or those at the token of the page before."""
        at = {"continuation-token": token} if token else {}
        tree = _parsed(self._ask("GET", bucket, "", {"list-type": "2", "prefix": prefix, **at}).body)
        keys = tuple(_text(entry, "Key") for entry in tree.iter(f"{_namespace(tree)}Contents"))
        if _text(tree, "IsTruncated") != "true":
            return Page(keys, "")
        following = _text(tree, "NextContinuationToken")
        if not keys or following in ("", token):
            raise Refused("its list does not come to an end: a page of it leads no further")
        return Page(keys, following)

    def abort(self, bucket: str, key: str, begun: str) -> None:
        self._ask("DELETE", bucket, key, {"uploadId": begun})

    def _in_parts(self, bucket: str, key: str, fd: int, size: int, note: Note) -> None:
        part = max(self._part, -(-size // _MOST_PARTS))
        begun = _text(_parsed(self._ask("POST", bucket, key, {"uploads": ""}).body), "UploadId")
        try:
            note(begun)
            tags = []
            for number, start in enumerate(range(0, size, part), 1):
                query = {"partNumber": str(number), "uploadId": begun}
                sent = self._ask("PUT", bucket, key, query, Body(fd, start, min(part, size - start)))
                tags.append(sent.headers.get("ETag", ""))
            listed = "".join(
                f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"
                for number, tag in enumerate(tags, 1)
            )
            whole = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()
            ended = self._ask("POST", bucket, key, {"uploadId": begun}, whole)
            if b"<Error>" in ended.body:  # S3 begins to answer before it knows
                raise self._trouble(ended)
        except BaseException:
            with contextlib.suppress(Refused, Trouble):  # whoever has the note tries again
                self.abort(bucket, key, begun)
            raise

    def _ask(
        self,
        method: str,
        bucket: str,
        key: str,
        query: Mapping[str, str] | None = None,
        body: Body | bytes = b"",
    ) -> Answer:
        query = query or {}
        path, asked = self._path(bucket, key), sigv4.quoted_query(query)
        payload = sigv4.UNSIGNED if self._web.server.secure else _digest(body)
        headers = self._headers(method, bucket, key, query, payload)
        answer = self._web.ask(method, f"{path}?{asked}" if asked else path, headers, body)
        if answer.status not in (200, 204):
            raise self._trouble(answer)
        return answer

    def _trouble(self, answer: Answer) -> Refused | Trouble:
        found = _trouble(answer)
        # Keys that were lent reach all that the plan names, so a no can only mean that the store has not heard of them.
        return NotYet(str(found)) if self._store.lent and str(found) in _UNHEARD else found

    def _path(self, bucket: str, key: str) -> str:
        return path_of(self._web.server, bucket, key)

    def _headers(self, method: str, bucket: str, key: str, query: Mapping[str, str], payload: str) -> Mapping[str, str]:
        if self._sign is not None:
            return self._sign(method, bucket, key, query, payload)
        return signed(self._store, method, bucket, key, query, payload)


def server_of(store: Store) -> Server:
    """Amazon's own, if no other is named."""
    return Server.at(store.endpoint or _AWS.format(region=store.region or DEFAULT_REGION))


def path_of(server: Server, bucket: str, key: str) -> str:
    return f"{server.path}/{sigv4.quoted_path(f'{bucket}/{key}' if key else bucket)}"


def signed(
    store: Store, method: str, bucket: str, key: str, query: Mapping[str, str], payload: str
) -> Mapping[str, str]:
    """The headers of a request to this store, with its keys."""
    server = server_of(store)
    return sigv4.signed(
        method,
        server.name,
        path_of(server, bucket, key),
        sigv4.quoted_query(query),
        payload,
        region=store.region or DEFAULT_REGION,
        access_key=store.access_key,
        secret_key=store.secret_key,
        session_token=store.session_token,
    )


def _digest(body: Body | bytes) -> str:
    if isinstance(body, bytes):
        return hashlib.sha256(body).hexdigest()
    digest = hashlib.sha256()
    for chunk in body:
        digest.update(chunk)
    return digest.hexdigest()


def _parsed(content: bytes) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(content)  # noqa: S314 - expat itself refuses entities that grow
    except ElementTree.ParseError:
        raise Trouble("its answer is no XML") from None


def _namespace(tree: ElementTree.Element) -> str:
    return tree.tag.partition("}")[0] + "}" if tree.tag.startswith("{") else ""


def _text(tree: ElementTree.Element, name: str) -> str:
    return tree.findtext(f"{_namespace(tree)}{name}") or ""


def _trouble(answer: Answer) -> Refused | Trouble:
    """The code that the store gave, and nothing else of what it said: its text may repeat the request."""
    found = re.search(rb"<Code>([A-Za-z0-9.]{1,80})</Code>", answer.body[:CHUNK])
    code = found[1].decode() if found else str(answer.status)
    if code in _LATER or answer.status >= 500 or answer.status == 429:
        return Trouble(code)
    return Refused(code)
