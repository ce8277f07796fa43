"""The three shapes of an event, and everything that only looks like one."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.services import events
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
