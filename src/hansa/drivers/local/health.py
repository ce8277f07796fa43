"""Does an exposed service answer? One short question through the socket that `dial` gives.

With a health path it must answer a GET, whatever it says short of a server error; without one it is enough that
something listens.
"""

import asyncio
from collections.abc import Awaitable, Callable
from socket import socket

Dial = Callable[[], Awaitable[socket]]


async def trouble(dial: Dial, path: str, timeout: float) -> str:
    """Why it is not healthy, or "". Whatever goes wrong is an answer, not an exception."""
    try:
        async with asyncio.timeout(timeout):
            connection = await dial()
            if not path:
                connection.close()
                return ""
            return _judge(path, await _ask(connection, path))
    except TimeoutError:
        return "it does not answer in time"
    except Exception as error:  # the service may speak anything, and the answer is the same
        return f"it does not answer: {error}"


async def _ask(connection: socket, path: str) -> bytes:
    try:
        reader, writer = await asyncio.open_connection(sock=connection)
    except BaseException:
        connection.close()
        raise
    try:
        target = path if path.startswith("/") else f"/{path}"
        lines = (f"GET {target} HTTP/1.1", "Host: localhost", "User-Agent: hansa-health", "Connection: close")
        writer.write("\r\n".join((*lines, "", "")).encode())
        await writer.drain()
        return await reader.readline()
    finally:
        writer.close()


def _judge(path: str, answer: bytes) -> str:
    version, _, rest = answer.partition(b" ")
    status = rest[:3]
    if not version.startswith(b"HTTP/") or not status.isdigit():
        return f"GET {path} is not answered in HTTP"
    return "" if int(status) < 500 else f"GET {path} is answered with {int(status)}"
