"""Is a body waited for as long as it keeps up a pace, and no longer?"""

import asyncio
from collections.abc import Sequence

import pytest
from starlette.types import Message

from hansa.entrypoints.http.exposed import bodies
from hansa.entrypoints.http.wire import BadBody, BodyTooSlow


class Visitor:
    """Says these pieces, then nothing more, or that it left."""

    def __init__(self, pieces: Sequence[bytes], *, ends: bool = True, leaves: bool = False) -> None:
        last = len(pieces) - 1
        self.said: list[Message] = [
            {"type": "http.request", "body": piece, "more_body": not (ends and number == last)}
            for number, piece in enumerate(pieces)
        ]
        if leaves:
            self.said.append({"type": "http.disconnect"})

    async def receive(self) -> Message:
        if not self.said:
            await asyncio.Event().wait()
        return self.said.pop(0)


async def test_a_small_body_is_taken_in_at_once() -> None:
    body = bodies.Body(Visitor([b"in ", b"parts"]).receive)
    assert await body.take_in(bodies.AT_ONCE)
    assert (body.is_complete, body.first) == (True, b"in parts")


async def test_of_a_large_one_the_first_part_is() -> None:
    pieces = [b"x" * bodies.TAKEN_IN, b"the rest", b"!"]
    body = bodies.Body(Visitor(pieces).receive)
    assert await body.take_in(bodies.AT_ONCE)
    assert (body.is_complete, len(body.first)) == (False, bodies.TAKEN_IN)
    assert b"".join([piece async for piece in body.all()]) == b"".join(pieces)
    assert body.is_complete


async def test_a_short_look_loses_nothing() -> None:
    visitor = Visitor([b"first"], ends=False)
    body = bodies.Body(visitor.receive)
    assert not await body.take_in(0.01)
    visitor.said.append({"type": "http.request", "body": b" second", "more_body": False})
    assert await body.take_in()
    assert body.first == b"first second"


@pytest.mark.parametrize("begun", [b"", b"x", b"x" * 1000])
async def test_who_stops_is_given_up(begun: bytes) -> None:
    with pytest.raises(BodyTooSlow):
        await bodies.Body(Visitor([begun], ends=False).receive, patience=0.05).take_in()


async def test_who_leaves_is_not_waited_for() -> None:
    with pytest.raises(BadBody):
        await bodies.Body(Visitor([b"x"], ends=False, leaves=True).receive).take_in()
