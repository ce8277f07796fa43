"""Is what somebody sends bounded before it is read, and not repeated to them at length?"""

import json
import tracemalloc
from typing import Any

import msgspec
import pytest

from hansa.entrypoints.http import wire
from hansa.kernel.errors import TooLarge
from hansa.messages.policies import NewPolicy
from hansa.services import Service

TINY = b",".join([b"{}"] * 100_000)


@pytest.mark.parametrize(
    "body",
    [
        b'{"input":[' + TINY + b"]}",
        b'{"allowed_users":[' + b",".join([b'""'] * 100_000) + b"]}",
        b'{"environment":{"variables":{' + b",".join(b'"v%d":""' % one for one in range(100_000)) + b"}}}",
        b'{"nobody_knows_it":[' + TINY + b"]}",
        TINY,
    ],
    ids=["input", "users", "variables", "unknown", "no JSON"],
)
def test_nothing_is_made_of_a_body_with_too_many_parts(body: bytes) -> None:
    tracemalloc.start()
    try:
        for read, kind in ((wire.decode, Service), (wire.decode_native, NewPolicy)):
            with pytest.raises(TooLarge, match="more than 20000 parts"):
                read(body, kind)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**20


@pytest.mark.parametrize("size", [100, 100_000])
def test_a_deep_one_is_refused_as_such(size: int) -> None:
    with pytest.raises(wire.BadBody):
        wire.decode(b'{"a":' + b"[" * size + b"]" * size + b"}", Service)


def test_a_long_script_has_few_parts() -> None:
    script = 'echo "{a,b}" [c] \\ ü\n' * 50_000
    assert wire.decode(json.dumps({"name": "a", "script": script}).encode(), Service).script == script


@pytest.mark.parametrize("body", [{"x" * 1_000_000: 1}, {"kind": "k" * 1_000_000}, {"rules": {"x" * 1_000_000: [1]}}])
def test_what_was_sent_is_not_sent_back(body: dict[str, Any]) -> None:
    with pytest.raises(wire.BadBody) as refused:
        wire.decode_native(msgspec.json.encode(body), NewPolicy)
    assert len(refused.value.message) <= 500
