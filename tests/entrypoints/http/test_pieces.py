"""Is what is sent in pieces the whole, and no piece too large?"""

import pytest
from starlette.types import Message

from hansa.entrypoints.http.pieces import PIECE, send_in_pieces


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE])
@pytest.mark.parametrize("more", [False, True])
async def test_pieces_are_the_whole(size: int, more: bool) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    body = bytes(number % 251 for number in range(size))
    await send_in_pieces(send, {"type": "http.response.body", "body": body, "more_body": more})
    assert b"".join(one["body"] for one in sent) == body
    assert [one["more_body"] for one in sent] == [True] * (len(sent) - 1) + [more]
    assert all(len(one["body"]) <= PIECE for one in sent)
