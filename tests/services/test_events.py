"""The three shapes of an event, and everything that only looks like one."""

import base64
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.services import Service, StorageIO, events
from hansa.services.errors import ForeignInput
from hansa.services.events import BytesInput, ObjectInput

MINIO = events.minio_event("gray", "in/ä b+c.txt", size=3, etag="e", at=0.0)


def test_an_upload_is_understood_with_its_odd_key() -> None:
    given = events.interpret(MINIO)
    assert isinstance(given, ObjectInput)
    assert (given.bucket, given.key, given.provider) == ("gray", "in/ä b+c.txt", "default")


@pytest.mark.parametrize(
    ("provider", "ident"),
    [("minio.default", "default"), ("default", "default"), ("minio", "default"), ("minio.b", "b"), ("b", "b")],
)
def test_the_wrapper_of_a_delegated_job_in_every_spelling(provider: str, ident: str) -> None:
    wrapped = json.dumps({"storage_provider": provider, "event": MINIO.decode()}).encode()
    given = events.interpret(wrapped)
    assert isinstance(given, ObjectInput)
    assert given.provider == ident


def test_a_wrapped_plain_body_keeps_its_bytes() -> None:
    inner = base64.b64encode(b"\x00binary\xff").decode()
    assert events.interpret(json.dumps({"storage_provider": "x", "event": inner}).encode()) == BytesInput(
        b"\x00binary\xff"
    )


def test_base64_is_decoded_and_json_is_not() -> None:
    assert events.interpret(base64.b64encode(b"hello")) == BytesInput(b"hello")
    assert events.interpret(b'{"a": 1}') == BytesInput(b'{"a": 1}')
    assert events.interpret(b"not base64!") == BytesInput(b"not base64!")
    assert events.interpret(b"1234") == BytesInput(b"1234")


@pytest.mark.parametrize(
    "body",
    [
        b'{"Records":[]}',
        b'{"Records":[{"eventSource":"minio:s3"}]}',
        b'{"Records":"x"}',
        b'{"event":1}',
        b"{" * 100_000,
    ],
)
def test_what_only_looks_like_an_event_is_input(body: bytes) -> None:
    assert isinstance(events.interpret(body), BytesInput)


@given(st.binary(max_size=300))
def test_no_body_makes_it_fall_over(body: bytes) -> None:
    events.interpret(body)


@pytest.mark.parametrize("provider", ["minio.far", "far", "s3.mine", "webdav.site", "visby", "minio.DEFAULT"])
def test_an_event_cannot_name_a_store_that_is_no_input(provider: str) -> None:
    """Not even one the service writes to: whoever sends the event would read there with the service's keys."""
    service = Service(
        name="gray",
        cluster_id="lubeck",
        input=(StorageIO(storage_provider="minio.default", path="gray/in"),),
        output=(
            StorageIO(storage_provider="minio.far", path="b/out"),
            StorageIO(storage_provider="s3.mine", path="b/o"),
        ),
        storage_providers={"minio": {"far": {"endpoint": "https://far.example"}}, "s3": {"mine": {}}},
    )
    given = events.interpret(json.dumps({"storage_provider": provider, "event": MINIO.decode()}).encode())
    with pytest.raises(ForeignInput) as caught:
        events.meant(given, service)
    assert caught.value.hint


def test_an_event_may_name_an_input_or_the_cluster_it_came_from() -> None:
    service = Service(
        name="gray",
        cluster_id="lubeck",
        annotations={"oscar.grycap/origin-cluster": "riga"},
        input=(StorageIO(storage_provider="minio.alias", path="gray/in"),),
    )
    for provider, meant in (
        ("minio.default", "default"),
        ("alias", "alias"),
        ("lubeck", "default"),
        ("riga", "default"),
    ):
        given = events.interpret(json.dumps({"storage_provider": provider, "event": MINIO.decode()}).encode())
        found = events.meant(given, service)
        assert isinstance(found, ObjectInput)
        assert found.provider == meant
    assert events.meant(BytesInput(b"x"), service) == BytesInput(b"x")


@given(st.text(max_size=20))
def test_whatever_an_event_names_it_is_the_default_store_or_an_input(provider: str) -> None:
    service = Service(name="gray", input=(StorageIO(storage_provider="minio.alias", path="gray/in"),))
    body = json.dumps({"storage_provider": provider, "event": MINIO.decode()}).encode()
    try:
        found = events.meant(events.interpret(body), service)
    except ForeignInput:
        return
    assert isinstance(found, ObjectInput)
    assert found.provider in ("default", "alias")


LONG = 2**20
TINY = b",".join([b"[]"] * (LONG // 3))


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":[' + TINY + b"]}",
        b"[" + TINY + b"]",
        b'{"Records":[' + TINY + b"]}",
        b'{"event":{"a":[' + TINY + b"]}}",
        json.dumps({"event": '{"a":[' + TINY.decode() + "]}"}).encode(),
        b'{"storage_provider":[' + TINY + b'],"event":"x"}',
        b'{"a":' + b"[" * LONG,
    ],
    ids=["object", "list", "records", "wrapped", "wrapped text", "provider", "deep"],
)
def test_nothing_is_made_of_what_nobody_asks_for(body: bytes) -> None:
    """A value takes fifty times as much memory as the two characters that mean it, and time."""
    tracemalloc.start()
    try:
        assert isinstance(events.interpret(body), BytesInput)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * len(body)


def test_a_large_body_may_be_wrapped() -> None:
    data = bytes(range(256)) * 8192
    wrapped = {"storage_provider": "minio.default", "event": base64.b64encode(data).decode()}
    assert events.interpret(json.dumps(wrapped).encode()) == BytesInput(data)


def test_half_a_character_is_no_reason_to_fall_over() -> None:
    body = b'{"event":"\\ud800","storage_provider":"x"}'
    assert events.interpret(body) == BytesInput(body)
