"""How is a request to an S3 store signed? AWS signature version 4, in the header, for path-style addresses. Pure."""

import hashlib
import hmac
import time
from collections.abc import Mapping
from urllib.parse import quote

UNSIGNED = "UNSIGNED-PAYLOAD"  # over TLS nobody can change the body on its way
EMPTY = hashlib.sha256(b"").hexdigest()
_UNRESERVED = "-_.~"


def quoted_path(path: str) -> str:
    return quote(path, safe="/" + _UNRESERVED)


def quoted_query(query: Mapping[str, str]) -> str:
    """As it is both sent and signed: in order of name."""
    pairs = sorted((quote(name, safe=_UNRESERVED), quote(value, safe=_UNRESERVED)) for name, value in query.items())
    return "&".join(f"{name}={value}" for name, value in pairs)


def signed(
    method: str,
    host: str,
    path: str,
    query: str,
    payload: str,
    *,
    region: str,
    access_key: str,
    secret_key: str,
    session_token: str = "",
    now: float | None = None,
) -> dict[str, str]:
    """The headers to send. `path` and `query` are quoted already, `payload` is the digest of the body."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    headers = {"host": host, "x-amz-content-sha256": payload, "x-amz-date": stamp}
    if session_token:
        headers["x-amz-security-token"] = session_token
    names = ";".join(sorted(headers))
    canonical = "\n".join(
        [method, path, query, *(f"{name}:{headers[name]}" for name in sorted(headers)), "", names, payload]
    )
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{secret_key}".encode()
    for step in (stamp[:8], region, "s3", "aws4_request"):
        key = hmac.digest(key, step.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"AWS4-HMAC-SHA256 Credential={access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return headers | {"authorization": credential}
