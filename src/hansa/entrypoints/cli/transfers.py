"""How do files get into and out of buckets? By presigned links straight to the storage, piece by piece."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import httpx

from hansa.entrypoints.cli import detours
from hansa.entrypoints.cli.client import Manager, document, limits, mapping, refusal, segment, unreachable
from hansa.entrypoints.cli.screen import Bar, Screen
from hansa.kernel import errors

_PIECE = 1 << 20
_STALLED = 60.0  # seconds without a single byte before we give up; a whole transfer may take as long as it takes
_LARGEST_PUT = 5 * 2**30  # S3's limit for one upload
_VALID = 3600


def split(target: str) -> tuple[str, str]:
    """Bucket and key of `bucket/path`."""
    bucket, _, key = target.strip().lstrip("/").partition("/")
    if not bucket:
        raise errors.Invalid(f"{target!r} names no bucket", hint="write it as bucket/path")
    return bucket, key


def put(manager: Manager, source: Path, target: str, screen: Screen) -> dict[str, Any]:
    """Uploads a file; a target that is a bucket or ends in / keeps the file's own name."""
    bucket, key = split(target)
    if not key or key.endswith("/"):
        key += source.name
    try:
        size = source.stat().st_size
        file = source.open("rb")
    except OSError as error:
        raise errors.Invalid(f"cannot read {source}: {error.strerror}") from None
    with file:
        if size > _LARGEST_PUT:
            raise errors.TooLarge(f"{source} is larger than 5 GiB", hint="split it, or use an S3 client")
        link = _presign(manager, bucket, key, "upload")
        with screen.transfer(f"{source.name} → {bucket}/{key}", size) as bar, _storage(manager) as http:
            headers = {**_headers(link), "Content-Length": str(size)}
            try:
                response = http.request(
                    link.get("method", "PUT"), link["url"], content=_pieces(file, bar), headers=headers
                )
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise unreachable(error, "the storage", _origin(link["url"]), _STALLED) from error
        if not response.is_success:
            raise _storage_refusal(response, f"{bucket}/{key}")
    return {"bucket": bucket, "object": key, "size_bytes": size}


def get(manager: Manager, source: str, target: Path, screen: Screen) -> dict[str, Any]:
    """Downloads an object; the file appears under its name only when it is whole."""
    bucket, key = split(source)
    if not key:
        raise errors.Invalid(f"{source!r} names no object", hint="write it as bucket/path")
    if target.is_dir():
        target = target / key.rpartition("/")[2]
    partial = target.with_name(f".{target.name}.part")
    try:
        with partial.open("wb") as file:
            size = fetch(manager, bucket, key, file, screen)
        partial.replace(target)
    except OSError as error:
        raise errors.Invalid(f"cannot write {target}: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)
    return {"bucket": bucket, "object": key, "size_bytes": size, "file": str(target)}


def fetch(manager: Manager, bucket: str, key: str, file: IO[bytes], screen: Screen) -> int:
    """The object's bytes into an open file; gives their number."""
    link = _presign(manager, bucket, key, "download")
    size = 0
    # The stored bytes are wanted, not what a content coding makes of them.
    headers = {**_headers(link), "Accept-Encoding": "identity"}
    try:
        with (
            screen.transfer(f"{bucket}/{key}", None) as bar,
            _storage(manager) as http,
            http.stream(link.get("method", "GET"), link["url"], headers=headers) as response,
        ):
            if not response.is_success:
                response.read()
                raise _storage_refusal(response, f"{bucket}/{key}")
            length = response.headers.get("content-length")
            bar.total(int(length) if length else None)
            for piece in response.iter_raw(_PIECE):
                file.write(piece)
                size += len(piece)
                bar.advance(len(piece))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise unreachable(error, "the storage", _origin(link["url"]), _STALLED) from error
    return size


def _presign(manager: Manager, bucket: str, key: str, operation: str) -> dict[str, Any]:
    body = {"object_key": key, "operation": operation, "expires_in": _VALID}
    path = f"/system/buckets/{segment(bucket)}/presign"
    answer = manager.call("POST", path, body=body, what=f"object {bucket}/{key}")
    link = mapping(document(answer, manager.name), manager.name)
    if not isinstance(link.get("url"), str):
        raise errors.HansaError(f"{manager.name} gave no link for {bucket}/{key}")
    return link


def _headers(link: dict[str, Any]) -> dict[str, str]:
    given = link.get("headers")
    # The link was signed for its own host; httpx sets that header itself.
    return {k: str(v) for k, v in given.items() if k.lower() != "host"} if isinstance(given, dict) else {}


def _storage(manager: Manager) -> httpx.Client:
    # A client of its own: the manager's credentials are not for the storage.
    ways = detours.mounts(manager.url, manager.connect_to, verify=manager.verify)
    return httpx.Client(verify=manager.verify, timeout=limits(_STALLED), mounts=ways)


def _pieces(file: IO[bytes], bar: Bar) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece
        bar.advance(len(piece))


def _origin(url: str) -> str:
    """The address without the signature, which is a secret."""
    parsed = httpx.URL(url)
    return f"{parsed.scheme}://{parsed.netloc.decode()}"


def _storage_refusal(response: httpx.Response, what: str) -> errors.HansaError:
    error = refusal(response, "the storage", what)
    if response.status_code == 403:
        error.hint = "the link may have run out, or you may not touch this object"
    return error
