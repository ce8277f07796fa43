"""What a job was started with: an object in a store, or plain bytes.

Reads the three shapes of OSCAR's events: MinIO's, the wrapper of a delegated job, anything else. Pure.
"""

import base64
import binascii
import json
import urllib.parse
from dataclasses import dataclass
from typing import Any

from hansa.kernel import clock
from hansa.services.service import StorageIO, provider_of

LARGEST_VARIABLE = 64 * 1024  # the kernel caps one environment string at 128 KiB


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


def interpret(body: bytes) -> ObjectInput | BytesInput:
    """What the script should find as its input file."""
    document = _json_object(body)
    if document is None:
        return BytesInput(_plain(body))
    provider = "default"
    inner = document.get("event")
    if inner is not None and isinstance(document.get("storage_provider", ""), str) and "Records" not in document:
        given = document.get("storage_provider") or "default"
        # peers write the id as minio.default, default or a bare cluster id
        provider = provider_of(StorageIO(storage_provider=given))[1] if "." in given else given
        provider = "default" if provider in ("minio", "") else provider
        wrapped = inner.encode() if isinstance(inner, str) else json.dumps(inner).encode()
        document = _json_object(wrapped)
        if document is None:
            return BytesInput(_plain(wrapped))
        body = wrapped
    return _object(document, provider) or BytesInput(body)


def _object(document: dict[str, Any], provider: str) -> ObjectInput | None:
    try:
        record = document["Records"][0]
        if record["eventSource"] not in ("minio:s3", "aws:s3"):
            return None
        bucket, key = record["s3"]["bucket"]["name"], urllib.parse.unquote_plus(record["s3"]["object"]["key"])
        if not (isinstance(bucket, str) and bucket and key):
            return None
        principal = (record.get("requestParameters") or {}).get("principalId") or ""
        return ObjectInput(bucket, key, provider, str(record.get("eventTime", "")), str(principal))
    except (KeyError, IndexError, TypeError, AttributeError):
        return None


def _json_object(body: bytes) -> dict[str, Any] | None:
    if body.lstrip()[:1] != b"{":
        return None
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _plain(body: bytes) -> bytes:
    """Clients send base64, perhaps in lines; JSON and anything that is no base64 is taken as it is."""
    try:
        json.loads(body)
        return body
    except (ValueError, RecursionError):
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
