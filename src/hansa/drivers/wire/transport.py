"""The transport itself: an `httpx` client speaks through it as through its own."""

import contextlib
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Iterator

import httpcore
import httpx

from hansa.drivers.wire.streams import Counted, Counting


class WireTransport(httpx.AsyncBaseTransport):
    """For one client. `backend` makes its connections; without one they are made as usual. An answer that is a flood
    ends with `Flood`, which is an `httpx.RemoteProtocolError`."""

    def __init__(
        self,
        *,
        verify: ssl.SSLContext | bool = True,
        limits: httpx.Limits,
        backend: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=_context(verify),
            network_backend=Counting(backend or httpcore.AnyIOBackend()),
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, httpx.AsyncByteStream)
        asked = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _translated():
            answer = await self._pool.handle_async_request(asked)
        assert isinstance(answer.stream, AsyncIterable)
        counted = answer.extensions.get("network_stream")
        if not isinstance(counted, Counted):  # it wants to speak something else from now on, which nobody asked for
            await answer.aclose()
            raise httpx.RemoteProtocolError("the answer is an upgrade")
        counted.begins()
        return httpx.Response(
            answer.status, headers=answer.headers, stream=_Body(answer.stream, counted), extensions=answer.extensions
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


def _context(verify: ssl.SSLContext | bool) -> ssl.SSLContext:
    if isinstance(verify, ssl.SSLContext):
        return verify
    if verify:
        return ssl.create_default_context()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class _Body(httpx.AsyncByteStream):
    def __init__(self, inner: AsyncIterable[bytes], counted: Counted) -> None:
        self._inner, self._counted = inner, counted

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translated():
            async for piece in self._inner:
                await self._counted.piece(len(piece))
                yield piece
        self._counted.ends()

    async def aclose(self) -> None:
        if hasattr(self._inner, "aclose"):
            with _translated():
                await self._inner.aclose()


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """What the layer below raises, as the client's callers know it."""
    try:
        yield
    except httpcore.UnsupportedProtocol as error:
        raise httpx.UnsupportedProtocol(str(error)) from error
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError) as error:
        # both libraries have the same names for them
        raise getattr(httpx, type(error).__name__, httpx.TransportError)(str(error)) from error
    except TimeoutError as error:
        raise httpx.ReadTimeout(str(error)) from error
    except OSError as error:  # a TLS record that cannot be read, for one: the library lets that pass as it is
        raise httpx.ReadError(str(error)) from error
