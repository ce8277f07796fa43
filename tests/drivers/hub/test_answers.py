"""What a hub answers is bounded before it is read: in parts, in settings, in numbers."""

import asyncio
import json
import tracemalloc

import msgspec
import pytest

from hansa.drivers.hub import Limits, answers
from hansa.federation import errors
from hansa.messages.members import Desired, Heard, Neighbour

HUB = "https://hub.example.org"


def told(settings: bytes) -> bytes:
    return b'{"generation":1,"state":"ready","settings":' + settings + b"}"


@pytest.mark.parametrize(
    "settings",
    [
        b'{"jobs":{"cpu":[' + b"[]," * 2_000_000 + b"[]]}}",
        b'{"jobs":{"cpu":[' + b"[]," * 30_000 + b"[]]}}",
        b'{"jobs":{"' + b"a" * 2_000_000 + b'":1}}',
        b'{"jobs":' + b"[" * 200 + b"]" * 200 + b"}",
    ],
    ids=["millions of parts", "many parts", "a long name", "deep"],
)
async def test_settings_that_are_too_much_are_not_read(settings: bytes) -> None:
    body = told(settings)
    tracemalloc.start()
    try:
        with pytest.raises(errors.HubRefused):
            await answers.desired(body, HUB, Limits())
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


async def test_what_a_large_federation_is_told_is_read_aside() -> None:
    many = tuple(
        Neighbour(id=f"c{number}", kind="hansa", endpoint=f"https://c{number}.example.org", verify=True, state="ready")
        for number in range(10_000)
    )
    said = Desired(generation=7, state="ready", settings={"images": {"allowed": ["x" * 50] * 1000}}, neighbours=many)
    reading = asyncio.create_task(answers.desired(msgspec.json.encode(said), HUB, Limits()))
    await asyncio.sleep(0)
    assert not reading.done()
    assert await reading == said


async def test_what_a_small_one_is_told() -> None:
    assert await answers.desired(b'{"generation":1,"state":"ready"}', HUB, Limits()) == Desired(
        generation=1, state="ready"
    )


@pytest.mark.parametrize("field", ["number", "desired", "received"])
@pytest.mark.parametrize("value", [-1, -(10**30), 10**30])
async def test_numbers_without_sense_are_not_taken(field: str, value: int) -> None:
    said = {"number": 1, "desired": 1, "every": 1, field: value}
    with pytest.raises(errors.HubRefused):
        await answers.decoded(json.dumps(said).encode(), Heard, HUB)


@pytest.mark.parametrize("value", ["-1", f"1{'0' * 30}"])
async def test_nor_generations_without_sense(value: str) -> None:
    with pytest.raises(errors.HubRefused):
        await answers.desired(b'{"generation":%s,"state":"ready"}' % value.encode(), HUB, Limits())
