"""How does a large answer get out? In pieces, each when the one before is on its way.

What is given to the server at once is kept there, after its request has ended, until the last byte was read.
"""

from starlette.types import Message, Send

PIECE = 64 * 1024  # bytes


async def send_in_pieces(send: Send, message: Message, size: int = PIECE) -> None:
    """A part of a body, however large."""
    body: bytes = message.get("body", b"")
    last = max(0, len(body) - 1) // size * size
    for start in range(0, last, size):
        await send({"type": "http.response.body", "body": body[start : start + size], "more_body": True})
    await send({**message, "body": body[last:]} if last else message)
