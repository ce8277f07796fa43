"""What a job was started with: an object in a store, or plain bytes.

Reads the three shapes of OSCAR's events: MinIO's, the wrapper of a delegated job, anything else. Pure.
"""

import base64
import binascii
import json
import re
import urllib.parse
from dataclasses import dataclass, replace

import msgspec

from hansa.kernel import clock
from hansa.services.errors import ForeignInput
from hansa.services.service import ORIGIN_CLUSTER, Service, StorageIO, provider_of

LARGEST_VARIABLE = 64 * 1024  # the kernel caps one environment string at 128 KiB
_LARGEST_RECORDS = 64 * 1024  # an object's name has 1024 bytes at most, and its record names it twice
_MISSING = msgspec.Raw()
_FIRST = re.compile(rb"\s*\{")


@dataclass(frozen=True, slots=True)
class ObjectInput:
    """The job's input is an object."""

    bucket: str
    key: str
    provider: str  # the provider id: "default" is the cluster's own store
    time: str
    principal: str = ""


@dataclass(frozen=True, slots=True)
class BytesInput:
    """The job's input is what was sent."""

    data: bytes


class _Told(msgspec.Struct):
    """What can make a body an event. Everything else in it is passed over: a body may be long, and nothing is made of
    what nobody asks for."""

    event: msgspec.Raw = msgspec.Raw(b"null")
    storage_provider: msgspec.Raw = msgspec.Raw(b'""')
    Records: msgspec.Raw = _MISSING


_TOLD, _ANYTHING, _TEXT = msgspec.json.Decoder(_Told), msgspec.json.Decoder(msgspec.Raw), msgspec.json.Decoder(str)
_NO_JSON = (msgspec.DecodeError, ValueError, RecursionError)


def interpret(body: bytes) -> ObjectInput | BytesInput:
    """What the script should find as its input file."""
    told = _read(body)
    if told is None:
        return BytesInput(_plain(body))
    provider = "default"
    if (wrapped := _wrapped(told)) is not None:
        provider, body = wrapped
        told = _read(body)
        if told is None:
            return BytesInput(_plain(body))
    return _object(told, provider) or BytesInput(body)


def meant(given: ObjectInput | BytesInput, service: Service) -> ObjectInput | BytesInput:
    """With the store as the service knows it: an event may name one of the service's own inputs, and no other of its
    stores, for whoever sends it would read there with the service's keys. Raises `ForeignInput`."""
    if isinstance(given, BytesInput) or given.provider == "default":
        return given
    if ("minio", given.provider) in {provider_of(io) for io in service.input}:
        return given
    if given.provider in (service.cluster_id, service.annotations.get(ORIGIN_CLUSTER)):
        return replace(given, provider="default")  # OSCAR names the origin like this when there is no output
    raise ForeignInput(
        f"the event names the store {given.provider[:80]!r}, which is no input of service {service.name}",
        hint="leave storage_provider out, or write minio.default",
    )


def _read(body: bytes) -> _Told | None:
    """None for what is no JSON object."""
    if _FIRST.match(body) is None:
        return None
    try:
        return _TOLD.decode(body)
    except _NO_JSON:
        return None


def _wrapped(told: _Told) -> tuple[str, bytes] | None:
    """The store and the inner body of a delegated job."""
    inner = bytes(told.event)
    if inner == b"null" or told.Records is not _MISSING:
        return None
    provider = _text(told.storage_provider)
    if provider is None:
        return None
    if inner.startswith(b'"'):
        text = _text(told.event)
        if text is None:
            return None
        inner = text.encode()
    if "." in provider:  # peers write the id as minio.default, default or a bare cluster id
        provider = provider_of(StorageIO(storage_provider=provider))[1]
    return ("default" if provider in ("minio", "") else provider), inner


def _text(value: msgspec.Raw) -> str | None:
    """None for what is no text."""
    try:
        return _TEXT.decode(value)
    except _NO_JSON:
        return None


def _object(told: _Told, provider: str) -> ObjectInput | None:
    if told.Records is _MISSING or len(memoryview(told.Records)) > _LARGEST_RECORDS:
        return None
    try:
        record = json.loads(bytes(told.Records))[0]
        if record["eventSource"] not in ("minio:s3", "aws:s3"):
            return None
        bucket, key = record["s3"]["bucket"]["name"], urllib.parse.unquote_plus(record["s3"]["object"]["key"])
        if not (isinstance(bucket, str) and bucket and key):
            return None
        principal = (record.get("requestParameters") or {}).get("principalId") or ""
        return ObjectInput(bucket, key, provider, str(record.get("eventTime", "")), str(principal))
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, RecursionError):
        return None


def _plain(body: bytes) -> bytes:
    """Clients send base64, perhaps in lines; JSON and anything that is no base64 is taken as it is."""
    try:
        _ANYTHING.decode(body)
        return body
    except _NO_JSON:
        pass
    try:
        # only line ends are left out: a sentence whose letters happen to be base64 is a sentence
        return base64.b64decode(body.translate(None, b"\r\n"), validate=True)
    except (binascii.Error, ValueError):
        return body


def minio_event(bucket: str, key: str, *, size: int, etag: str, at: float, content_type: str = "") -> bytes:
    """An upload in the shape scripts and supervisors expect."""
    quoted = urllib.parse.quote_plus(key)
    record = {
        "eventVersion": "2.0",
        "eventSource": "minio:s3",
        "awsRegion": "",
        "eventTime": clock.rfc3339(at),
        "eventName": "s3:ObjectCreated:Put",
        "userIdentity": {"principalId": ""},
        "requestParameters": {"principalId": "", "sourceIPAddress": ""},
        "responseElements": {},
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": "Config",
            "bucket": {"name": bucket, "ownerIdentity": {"principalId": ""}, "arn": f"arn:aws:s3:::{bucket}"},
            "object": {"key": quoted, "size": size, "eTag": etag, "contentType": content_type},
        },
    }
    document = {"EventName": "s3:ObjectCreated:Put", "Key": f"{bucket}/{key}", "Records": [record]}
    return json.dumps(document, separators=(",", ":")).encode()
