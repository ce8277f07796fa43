"""How do requests and answers travel? Two thin transports over httpx, one that waits and one that awaits.

Everything they have in common, which is all but the waiting, stands in `_Transport` and in the files without IO.
"""

import asyncio
import copy
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import aclosing, closing
from ssl import SSLContext
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from hansa import __version__
from hansa.client import errors
from hansa.client.events import Event, Reader
from hansa.client.operations import Request
from hansa.client.patience import Patience

T = TypeVar("T")
_HEADERS = {"User-Agent": f"hansa-client/{__version__}", "Accept": "application/json"}
SILENCE = 45.0  # seconds; a hub says every 15 that it is still there


class _Bearer(httpx.Auth):
    """Signs every request with the token the supplier holds at that moment."""

    def __init__(self, supply: Callable[[], str]) -> None:
        self._supply = supply

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = f"Bearer {self._supply()}"
        yield request


class _Transport:
    """Which hub, as whom, and for how long; both transports' half without waiting."""

    def __init__(
        self,
        url: str,
        *,
        user: str = "",
        password: str = "",
        token: str | Callable[[], str] = "",
        verify: bool | SSLContext = True,
        timeout: float = 20.0,
        retries: int = 2,
        trust_env: bool = True,
    ) -> None:
        """`token` is an OIDC access token, or what supplies the present one; without, `user` signs in by Basic.

        `timeout` is for a whole call, in seconds; `retries` is how often a call that only reads is tried again.
        Without `trust_env` the environment's proxies and certificates are not for this hub.
        """
        self.url = url.rstrip("/")
        self._patience = Patience(timeout, retries)
        auth: httpx.Auth | None = None
        if token:
            auth = _Bearer(token if callable(token) else lambda: token)
        elif user:
            auth = httpx.BasicAuth(user, password)
        self._open(auth, verify, trust_env)

    def _open(self, auth: httpx.Auth | None, verify: bool | SSLContext, trust_env: bool) -> None:
        raise NotImplementedError

    def within(self, seconds: float) -> Self:
        """The same client, over the same connections, with another time limit: `hub.within(2).clusters()`."""
        other = copy.copy(self)
        other._patience = Patience(seconds, self._patience.retries)
        return other

    def _wire(self, request: Request[Any], left: float) -> dict[str, Any]:
        """What httpx needs to know."""
        headers = {"Content-Type": "application/json"} if request.content is not None else {}
        return {
            "method": request.method,
            "url": self.url + request.target,
            "content": request.content,
            "headers": headers,
            "timeout": httpx.Timeout(left, connect=min(self._patience.connect, left)),
        }

    def _stream_wire(self, request: Request[Any], last: str) -> dict[str, Any]:
        wire = self._wire(request, SILENCE)
        wire["headers"] = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
        return wire

    def _check_stream(self, answer: httpx.Response) -> None:
        if not answer.is_success:
            raise errors.refusal(answer.status_code, answer.headers, answer.content, self.url)
        if not answer.headers.get("content-type", "").startswith("text/event-stream"):
            raise errors.Unexpected(f"{self.url} answered no stream of events", status=answer.status_code)

    def _cut(self) -> errors.Unreachable:
        return errors.Unreachable(f"the stream of events of {self.url} was cut", hint="is the hub being restarted?")

    def _too_slow(self) -> errors.TooSlow:
        return errors.TooSlow(
            f"{self.url} did not answer within {self._patience.seconds:g} s", hint="try again, or allow more time"
        )

    def _failure(self, error: Exception) -> errors.HubError:
        """What a failed exchange means."""
        if isinstance(error, (httpx.InvalidURL, httpx.UnsupportedProtocol)):
            return errors.Invalid(f"{self.url} is no usable address: {error}", hint="write it as https://host:port")
        if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
            return self._too_slow()
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return errors.Unreachable(
                f"the certificate of {self.url} is not trusted", hint="set SSL_CERT_FILE to its authority"
            )
        reason = "no answer" if isinstance(error, httpx.ConnectTimeout) else str(error) or type(error).__name__
        return errors.Unreachable(
            f"the hub cannot be reached at {self.url}: {reason}", hint="is it running, and the address right?"
        )


class SyncTransport(_Transport):
    _http: httpx.Client

    def _open(self, auth: httpx.Auth | None, verify: bool | SSLContext, trust_env: bool) -> None:
        self._http = httpx.Client(auth=auth, verify=verify, headers=_HEADERS, trust_env=trust_env)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def do(self, request: Request[T]) -> T:
        """One call, from the request to what its answer says."""
        end, tried = time.monotonic() + self._patience.seconds, 0
        while True:
            try:
                return request.read(*self._exchange(request, end), self.url)
            except errors.HubError as error:
                tried += 1
                pause = self._patience.pause(request, error, tried, end - time.monotonic())
                if pause is None:
                    raise
            time.sleep(pause)

    def _exchange(self, request: Request[Any], end: float) -> tuple[int, Mapping[str, str], bytes]:
        pieces = []
        try:
            with self._http.stream(**self._wire(request, max(0.001, end - time.monotonic()))) as response:
                for piece in response.iter_bytes():
                    pieces.append(piece)
                    if time.monotonic() > end:  # a hub that trickles is too slow as well
                        raise self._too_slow()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._failure(error) from error
        return response.status_code, response.headers, b"".join(pieces)

    def listen(self, request: Request[T]) -> Generator[T, None, None]:
        """The events of a stream, for as long as they are wanted; one that was cut is taken up where it ended."""
        last, tried = "", 0
        while True:
            try:
                with closing(self._events(request, last)) as heard:
                    for event in heard:
                        last, tried = event.id, 0
                        if request.tells(event):
                            yield request.heard(event, self.url)
            except errors.HubError as error:
                tried += 1
                pause = self._patience.pause(request, error, tried, float("inf"))
                if pause is None:
                    raise
                time.sleep(pause)

    def _events(self, request: Request[Any], last: str) -> Generator[Event, None, None]:
        reader = Reader()
        try:
            with self._http.stream(**self._stream_wire(request, last)) as answer:
                if not answer.is_success:
                    answer.read()
                self._check_stream(answer)
                for piece in answer.iter_bytes():
                    yield from reader.feed(piece)
        except httpx.ReadTimeout:
            raise self._cut() from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._failure(error) from error
        raise self._cut()


class AsyncTransport(_Transport):
    _http: httpx.AsyncClient

    def _open(self, auth: httpx.Auth | None, verify: bool | SSLContext, trust_env: bool) -> None:
        self._http = httpx.AsyncClient(auth=auth, verify=verify, headers=_HEADERS, trust_env=trust_env)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def do(self, request: Request[T]) -> T:
        """One call, from the request to what its answer says."""
        end, tried = time.monotonic() + self._patience.seconds, 0
        while True:
            try:
                return request.read(*await self._exchange(request, end), self.url)
            except errors.HubError as error:
                tried += 1
                pause = self._patience.pause(request, error, tried, end - time.monotonic())
                if pause is None:
                    raise
            await asyncio.sleep(pause)

    async def _exchange(self, request: Request[Any], end: float) -> tuple[int, Mapping[str, str], bytes]:
        left = max(0.001, end - time.monotonic())
        try:
            async with asyncio.timeout(left):
                answer = await self._http.request(**self._wire(request, left))
        except TimeoutError:
            raise self._too_slow() from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._failure(error) from error
        return answer.status_code, answer.headers, answer.content

    async def listen(self, request: Request[T]) -> AsyncGenerator[T, None]:
        """The events of a stream, for as long as they are wanted; one that was cut is taken up where it ended."""
        last, tried = "", 0
        while True:
            try:
                async with aclosing(self._events(request, last)) as heard:
                    async for event in heard:
                        last, tried = event.id, 0
                        if request.tells(event):
                            yield request.heard(event, self.url)
            except errors.HubError as error:
                tried += 1
                pause = self._patience.pause(request, error, tried, float("inf"))
                if pause is None:
                    raise
                await asyncio.sleep(pause)

    async def _events(self, request: Request[Any], last: str) -> AsyncGenerator[Event, None]:
        reader = Reader()
        try:
            async with self._http.stream(**self._stream_wire(request, last)) as answer:
                if not answer.is_success:
                    await answer.aread()
                self._check_stream(answer)
                async for piece in answer.aiter_bytes():
                    for event in reader.feed(piece):
                        yield event
        except httpx.ReadTimeout:
            raise self._cut() from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._failure(error) from error
        raise self._cut()
