"""Do files reach a real store whole, and is what a store says understood?"""

import contextlib
import http.server
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

import pytest

from hansa.drivers.runs.stager.errors import Refused, Trouble
from hansa.drivers.runs.stager.plan import Store
from hansa.drivers.runs.stager.s3 import S3
from hansa.drivers.s3 import OpenStore
from hansa.storage import ObjectStore

pytest_plugins = ("real.object_store",)

AWKWARD = [
    "in/plain.txt",
    "in/a b.txt",
    "in/a+b.txt",
    "in/señor/ß ü.txt",
    "in/日本.txt",
    "in/50%.txt",
    "in/a&b=c#d?.txt",
]


@contextlib.contextmanager
def opened(endpoint: str, access_key: str = "key", secret_key: str = "secret", part: int = 5 * 2**20) -> Iterator[S3]:
    there = urlsplit(endpoint)
    store = Store("s3", endpoint, "us-east-1", access_key=access_key, secret_key=secret_key)
    made = S3(store, lambda: socket.create_connection((there.hostname, there.port)), part=part)
    with contextlib.closing(made):
        yield made


@pytest.fixture
def store(object_store: OpenStore) -> ObjectStore:
    return object_store.store


@pytest.fixture
async def bucket(store: ObjectStore) -> str:
    name = f"test-{os.urandom(8).hex()}"
    await store.create_bucket(name)
    return name


@pytest.fixture
def s3(object_store: OpenStore) -> Iterator[S3]:
    keys = object_store.keys
    with opened(object_store.store.address.endpoint, keys.access_key, keys.secret_key) as made:
        yield made


@pytest.mark.parametrize("key", AWKWARD)
async def test_names_and_content_stay(s3: S3, store: ObjectStore, bucket: str, key: str, tmp_path: Path) -> None:
    with open(tmp_path / "file", "w+b") as file:
        file.write(key.encode())
        file.flush()
        s3.upload(bucket, key, file.fileno(), len(key.encode()))
    assert await store.get(bucket, key) == key.encode()
    with open(tmp_path / "again", "w+b") as file:
        s3.download(bucket, key, file.fileno())
    assert (tmp_path / "again").read_bytes() == key.encode()
    assert s3.page(bucket, key).keys == (key,)


@pytest.mark.parametrize("size", [0, 1, 5 * 2**20, 10 * 2**20 + 1, 21 * 2**20 + 5])
async def test_files_of_every_size_stay_whole(
    s3: S3, store: ObjectStore, bucket: str, size: int, tmp_path: Path
) -> None:
    content = os.urandom(size)
    (tmp_path / "file").write_bytes(content)
    with open(tmp_path / "file", "rb") as file:
        s3.upload(bucket, "out/file", file.fileno(), size)
    assert await store.get(bucket, "out/file") == content
    with open(tmp_path / "again", "w+b") as file:
        s3.download(bucket, "out/file", file.fileno())
    assert (tmp_path / "again").read_bytes() == content


async def test_long_lists_come_in_pages(s3: S3, store: ObjectStore, bucket: str) -> None:
    for number in range(1100):
        await store.put(bucket, f"data/{number:04}", b"")
    first = s3.page(bucket, "data/")
    second = s3.page(bucket, "data/", first.following)
    assert (first.keys + second.keys, second.following) == (tuple(f"data/{number:04}" for number in range(1100)), "")


def test_what_is_missing_or_shut_is_no_reason_to_try_again(object_store: OpenStore, s3: S3, tmp_path: Path) -> None:
    with open(tmp_path / "file", "w+b") as file:
        with pytest.raises(Refused, match="NoSuchBucket"):
            s3.download("no-such-bucket-here", "key", file.fileno())
        with (
            opened(object_store.store.address.endpoint) as stranger,
            pytest.raises(Refused, match="InvalidAccessKeyId"),
        ):
            stranger.download("bucket", "key", file.fileno())


class Odd(http.server.BaseHTTPRequestHandler):
    """A store that answers as a test wants."""

    protocol_version = "HTTP/1.1"
    answer: ClassVar[tuple[int, dict[str, str], bytes]] = (200, {}, b"")
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        type(self).asked.append(self.path)
        status, headers, body = type(self).answer
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def odd() -> Iterator[str]:
    Odd.asked = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Odd) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            serving.join()


def test_no_redirect_is_followed(odd: str, tmp_path: Path) -> None:
    Odd.answer = (307, {"Location": f"{odd}/elsewhere"}, b"")
    with opened(odd) as s3, open(tmp_path / "file", "w+b") as file, pytest.raises(Refused, match="307"):
        s3.download("bucket", "key", file.fileno())
    assert Odd.asked == ["/bucket/key"]


def test_an_answer_that_is_cut_off_is_asked_for_again(odd: str, tmp_path: Path) -> None:
    Odd.answer = (200, {"Content-Length": "100"}, b"only this")
    with opened(odd) as s3, open(tmp_path / "file", "w+b") as file, pytest.raises(Trouble):
        s3.download("bucket", "key", file.fileno())


@pytest.mark.parametrize("length", ["1e3", "-5", "9" * 5000, "ten"])
def test_a_length_that_is_no_number_is_refused(odd: str, tmp_path: Path, length: str) -> None:
    Odd.answer = (200, {"Content-Length": length}, b"only this")
    with opened(odd) as s3, open(tmp_path / "file", "w+b") as file, pytest.raises(Refused, match="no number"):
        s3.download("bucket", "key", file.fileno())


def test_a_store_that_is_busy_is_asked_again_later(odd: str, tmp_path: Path) -> None:
    Odd.answer = (503, {}, b"<Error><Code>SlowDown</Code></Error>")
    with opened(odd) as s3, open(tmp_path / "file", "w+b") as file, pytest.raises(Trouble, match="SlowDown"):
        s3.download("bucket", "key", file.fileno())


def test_a_list_without_end_is_not_kept(odd: str) -> None:
    Odd.answer = (200, {}, b"<ListBucketResult>" + b"x" * 9 * 2**20)
    with opened(odd) as s3, pytest.raises(Refused, match="too large"):
        s3.page("bucket", "")


@pytest.mark.parametrize(
    "endpoint",
    ["http://user:pass@127.0.0.1:9", "http://127.0.0.1:9/?x", "ftp://127.0.0.1", "//127.0.0.1", "", "http://[::1", "x"],
)
def test_an_odd_address_is_refused(endpoint: str) -> None:
    store = Store("s3", endpoint or "http://", "us-east-1")
    with pytest.raises(Refused):
        S3(store, lambda: pytest.fail("it was dialled"))


def test_a_region_is_no_part_of_another_host() -> None:
    with pytest.raises(Refused):
        S3(Store("s3", "", "x.evil.example/#"), lambda: pytest.fail("it was dialled"))
