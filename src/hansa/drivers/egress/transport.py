"""HTTP through the door: every connection is dialled by it, an answer is limited in size and a call in time.

Redirects are nobody's here: `DoorTransport.client` follows none and knows no proxy of the environment. TLS is checked
for the name that was asked, whatever address the door dialled.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Collection, Iterable
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpcore
import httpx

from hansa.drivers.egress.door import Door
from hansa.drivers.wire import WireTransport
from hansa.kernel.egress import AnswerTooLarge, EgressUnreachable, Pair

_CONNECT_SECONDS = 10.0
_KEEP_IDLE = 4.0


class DoorTransport(httpx.AsyncBaseTransport):
    """For one client. `most` bytes of each answer are read, `seconds` is what one call may take altogether."""

    def __init__(
        self,
        door: Door,
        *,
        most: int,
        seconds: float,
        verify: ssl.SSLContext | bool = True,
        own: Collection[Pair] = (),
        connections: int = 32,
    ) -> None:
        self._most, self._seconds = most, seconds
        self._wire = WireTransport(
            verify=verify,
            limits=httpx.Limits(max_connections=connections, keepalive_expiry=_KEEP_IDLE),
            backend=_Dialer(door, own),
        )

    def client(self, **more: Any) -> httpx.AsyncClient:
        """A client over it; `base_url`, `auth` and `headers` as usual."""
        return httpx.AsyncClient(
            transport=self,
            trust_env=False,
            follow_redirects=False,
            timeout=self._seconds,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            **more,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        end = asyncio.get_running_loop().time() + self._seconds
        async with _until(end):
            answer = await self._wire.handle_async_request(request)
        assert isinstance(answer.stream, httpx.AsyncByteStream)
        return httpx.Response(
            answer.status_code,
            headers=answer.headers,
            stream=_Body(answer.stream, self._most, end),
            extensions=answer.extensions,
        )

    async def aclose(self) -> None:
        await self._wire.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream, most: int, end: float) -> None:
        self._inner, self._most, self._end = inner, most, end

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        chunks = aiter(self._inner)
        while True:
            async with _until(self._end):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            size += len(chunk)
            if size > self._most:
                raise AnswerTooLarge(f"the answer has more than {self._most} bytes", hint="check what answers there")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


@contextlib.asynccontextmanager
async def _until(end: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout_at(end):
            yield
    except TimeoutError:
        raise httpx.ReadTimeout("the call took too long") from None


class _Dialer(httpcore.AsyncNetworkBackend):
    def __init__(self, door: Door, own: Collection[Pair]) -> None:
        self._door, self._own = door, own

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        seconds = _CONNECT_SECONDS if timeout is None else min(timeout, _CONNECT_SECONDS)
        try:
            made = await self._door.connect(host, port, timeout=seconds, own=self._own)
        except EgressUnreachable as error:
            raise httpcore.ConnectError(error.message) from error
        return _Stream(*await asyncio.open_connection(sock=made))

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        raise httpcore.ConnectError("only the door dials")


class _Stream(httpcore.AsyncNetworkStream):
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            async with asyncio.timeout(timeout):
                return await self._reader.read(max_bytes)
        except TimeoutError as error:
            raise httpcore.ReadTimeout from error
        except OSError as error:
            raise httpcore.ReadError from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            async with asyncio.timeout(timeout):
                self._writer.write(buffer)
                await self._writer.drain()
        except TimeoutError as error:
            raise httpcore.WriteTimeout from error
        except OSError as error:
            raise httpcore.WriteError from error

    async def aclose(self) -> None:
        self._writer.transport.abort()  # a peer that does not say goodbye is not waited for

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                await self._writer.start_tls(ssl_context, server_hostname=server_hostname)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout from error
        except OSError as error:  # SSLError too
            self._writer.transport.abort()
            raise httpcore.ConnectError(str(error)) from error
        return self

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":  # the pool asks before it uses a kept connection again; who is to be read has ended
            return self._reader.at_eof()
        return self._writer.get_extra_info(info)
