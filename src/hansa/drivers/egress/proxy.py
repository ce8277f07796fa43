"""How do programs that are not ours go out by the door? Through this proxy, the only thing their network holds.

It speaks CONNECT, plain HTTP, and to one fixed target nothing of its own. What the program asks for is dialled by the
door, so that redirects, token servers and names it finds on its way are judged like the first one.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from hansa.drivers.egress.door import Door
from hansa.kernel.egress import BadTarget, EgressRefused, EgressUnreachable, Pair, target_of

_HEAD_SECONDS, _DIAL_SECONDS = 10.0, 15.0
_LARGEST_HEAD = 32 * 1024
_CHUNK = 1 << 18
_MOST = 64  # connections at a time


class Proxy:
    """`serve` it on sockets that are bound where the program is."""

    def __init__(self, door: Door) -> None:
        self._door = door

    @contextlib.asynccontextmanager
    async def serve(self, listening: socket.socket, fixed: Pair | None = None) -> AsyncIterator[list[str]]:
        """Until it is left, which ends every connection. With `fixed` every visitor is led there. Gives a list that
        grows with what was refused, in words."""
        refused: list[str] = []
        visits: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if len(visits) >= _MOST:
                writer.transport.abort()
                return
            visit = asyncio.create_task(self._visit(reader, writer, fixed, refused), name="egress proxy")
            visits.add(visit)
            visit.add_done_callback(visits.discard)

        server = await asyncio.start_server(accept, sock=listening, limit=_LARGEST_HEAD)
        try:
            yield refused
        finally:
            server.close()
            for visit in list(visits):
                visit.cancel()
            await asyncio.gather(*visits, return_exceptions=True)

    async def _visit(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fixed: Pair | None, refused: list[str]
    ) -> None:
        try:
            await self._pass_on(reader, writer, fixed)
        except EgressRefused as error:
            refused.append(error.message)
            writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        except EgressUnreachable:
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        except (BadTarget, asyncio.LimitOverrunError, ValueError):
            writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        except (asyncio.IncompleteReadError, OSError, TimeoutError):
            writer.transport.abort()
        finally:
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fixed: Pair | None) -> None:
        begin = b""
        if fixed is None:
            async with asyncio.timeout(_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            (host, port), begin = _asked(head)
        else:
            host, port = fixed
        made = await self._door.connect(host, port, timeout=_DIAL_SECONDS)
        answers, there = await asyncio.open_connection(sock=made)
        try:
            if begin:
                there.write(begin)
            elif fixed is None:
                writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            async with asyncio.TaskGroup() as ways:
                ways.create_task(_pour(reader, there))
                ways.create_task(_pour(answers, writer))
        except* OSError:
            writer.transport.abort()
        finally:
            there.transport.abort()


def _asked(head: bytes) -> tuple[Pair, bytes]:
    """Whom to dial, and what to say there first: nothing for CONNECT."""
    line, _, rest = head.partition(b"\r\n")
    method, where, version = line.decode("ascii").split(" ")
    if method == "CONNECT":
        target = target_of(f"http://{where}")
        if not where.endswith(f":{target.port}"):
            raise BadTarget("a port is missing")
        return (target.host, target.port), b""
    parts = urlsplit(where)
    if parts.scheme != "http":
        raise BadTarget("only http goes in the clear")
    target = target_of(f"http://{parts.netloc}")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    # one request for each connection: the next may be for somebody else
    kept = [each for each in rest.split(b"\r\n") if not each.lower().startswith((b"connection:", b"proxy-"))]
    first = f"{method} {path} {version}\r\nConnection: close\r\n".encode("ascii")
    return (target.host, target.port), first + b"\r\n".join(kept)


async def _pour(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while chunk := await source.read(_CHUNK):
        target.write(chunk)
        await target.drain()
    if target.can_write_eof():
        with contextlib.suppress(OSError):
            target.write_eof()
