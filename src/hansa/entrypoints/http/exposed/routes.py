"""`/system/services/{name}/exposed/…`: everything is passed on to the service's own process, WebSockets too."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any

import httpcore
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import Message, Receive, Scope, Send

from hansa.bootstrap import App
from hansa.entrypoints.http.clients import address_of
from hansa.entrypoints.http.document import ADMIN, SERVICE, USER
from hansa.entrypoints.http.exposed import bodies, headers, visitors
from hansa.entrypoints.http.exposed.limits import Limits, ServiceCrowded
from hansa.entrypoints.http.exposed.origins import Origins
from hansa.entrypoints.http.exposed.paths import BASE, base_of
from hansa.entrypoints.http.exposed.sockets import pass_on_socket
from hansa.entrypoints.http.exposed.visitors import target
from hansa.entrypoints.http.openapi import answers
from hansa.entrypoints.http.parameters import SERVICE_NAME
from hansa.entrypoints.http.protocol import LET_GO
from hansa.kernel.errors import Forbidden
from hansa.services import Record, reading

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_LIMITS = {"connect": 5.0, "read": 300.0, "write": 60.0, "pool": 10.0}
_NOT_SHARED = (b"cache-control", b"private")  # or a proxy's cache would show it to those who may not in
_UNREAD = 60.0  # seconds a visitor may leave an answer lying, beyond what its size needs
_READING = 2 * 1024  # bytes a second that a visitor on the slowest link worth serving takes


class NoServiceWorkers(Forbidden):
    """A service worker would act for the whole origin, long after its page is closed."""

    code = "exposed.no-service-workers"


def _described() -> dict[str, Any]:
    """For the OpenAPI document: whatever the process answers, or why it cannot."""
    operation: dict[str, Any] = {
        "tags": ["exposed"],
        "summary": "Passed on to the service's own process",
        "description": "Open to everybody if the service is public and does not set `expose.set_auth`. Else for who "
        "may see the service, and for its token, as bearer or as Basic password of a user named like the service. "
        "Credentials and cookies of the manager are not passed on. WebSockets are passed on too.",
        "parameters": [
            {"name": "name", "in": "path", "required": True, "schema": {"type": "string", **SERVICE_NAME}},
            {"name": "path", "in": "path", "required": True, "schema": {"type": "string"}},
        ],
        "security": [{}, {SERVICE: []}, {ADMIN: []}, {USER: []}],
        "responses": {
            **{str(status): answer for status, answer in answers(401, 403, 404, 408, 502).items()},
            "default": {"description": "The process's own answer"},
        },
    }
    return {f"{BASE}/{{path}}": dict.fromkeys(("get", "post", "put", "patch", "delete"), operation)}


DESCRIBED = _described()


async def pass_on(request: Request) -> Response:
    app: App = request.app.state.hansa
    origins: Origins = request.app.state.origins
    record = reading.exposed(app.room, request.path_params["name"])
    if elsewhere := origins.moved(request, record.service.name):
        return RedirectResponse(elsewhere)
    if "service-worker" in request.headers:
        raise NoServiceWorkers("exposed services have no service workers")
    await visitors.check(app, record, request)
    held = ExitStack()
    try:
        answer = await _asked(request, record, held)
        kept = headers.outward(answer.headers, base_of(record.service.name), sandboxed=origins.is_sandboxed(request))
        if not visitors.is_open(app, record.service):
            kept.append(_NOT_SHARED)
        return _Relay(answer, kept, held.pop_all())
    except httpcore.PoolTimeout:
        raise ServiceCrowded(f"service {record.service.name} has no connection free") from None
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
        text = f"service {record.service.name} did not answer: {type(error).__name__}"
        return PlainTextResponse(f"{text} (see its deployment logs)\n", 502)
    finally:
        held.close()
        app.note_exposed(record.service.name)


async def _asked(request: Request, record: Record, held: ExitStack) -> httpcore.Response:
    """The process's answer, as far as its headers. The body comes first: nobody dials for one that is not there."""
    service, limits = record.service, request.app.state.exposed_limits
    with ExitStack() as upload:
        body = await _body(request, service.name, limits, upload)
        held.enter_context(limits.calls.taken(service.name, address_of(request)))
        url = httpcore.URL(
            scheme=b"http", host=service.name.encode(), port=service.expose.port, target=target(record, request)
        )
        inner = httpcore.Request(
            request.method,
            url,
            headers=_inward(request, service.name, body),
            content=b"" if body is None else body.first if body.is_complete else body.all(),
            extensions={"timeout": _LIMITS},
        )
        pool: httpcore.AsyncConnectionPool = request.app.state.exposed_pools.of(service.name)
        return await pool.handle_async_request(inner)


async def _body(request: Request, service: str, limits: Limits, upload: ExitStack) -> bodies.Body | None:
    """What a visitor sends, once enough of it is here. Only who has to be waited for is counted."""
    if "content-length" not in request.headers and "transfer-encoding" not in request.headers:
        return None
    body = bodies.Body(request.receive)
    if not await body.take_in(bodies.AT_ONCE):
        with limits.arriving.taken(service, address_of(request)):
            await body.take_in()
    if not body.is_complete:
        upload.enter_context(limits.uploads.taken(service, address_of(request)))
    return body


def _inward(request: Request, service: str, body: bodies.Body | None) -> list[tuple[bytes, bytes]]:
    raw = request.headers.raw
    stated = headers.inward(raw)
    stated.append((b"host", request.headers.get("host", service).encode("latin-1")))
    stated.append((b"x-forwarded-prefix", base_of(service).encode()))
    if request.client:
        stated.append((b"x-forwarded-for", request.client.host.encode()))
    if cookie := headers.cookie(raw):
        stated.append((b"cookie", cookie.encode("latin-1")))
    if body is None:
        return stated
    if body.is_complete:
        return [*stated, (b"content-length", str(len(body.first)).encode())]
    if (length := request.headers.get("content-length")) is not None:
        return [*stated, (b"content-length", length.encode())]
    return [*stated, (b"transfer-encoding", b"chunked")]


class _Relay(StreamingResponse):
    """A process's answer on its way out. `held` is given back when it has gone, or nobody takes it."""

    def __init__(self, answer: httpcore.Response, kept: list[tuple[bytes, bytes]], held: ExitStack) -> None:
        super().__init__(self._chunks(), answer.status)
        self.raw_headers = kept
        self._answer = answer
        self._held = held
        self._gone = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size, waited = 0, 0.0

        async def sent(message: Message) -> None:
            nonlocal size, waited
            began = time.monotonic()
            try:
                async with asyncio.timeout(max(0.0, _UNREAD + size / _READING - waited)):
                    await send(message)
            except TimeoutError:
                self._gone = True
                scope[LET_GO]()  # there is no nicer way to tell somebody who does not listen
            waited += time.monotonic() - began
            size += len(message.get("body", b""))

        async def heard() -> Message:
            message = await receive()
            self._gone = self._gone or message["type"] == "http.disconnect"
            return message

        try:
            await super().__call__(scope, heard, sent)
        finally:
            self._held.close()
            await self._answer.aclose()

    async def _chunks(self) -> AsyncIterator[bytes]:
        """Until the visitor has gone: while the process always has more, a cancellation finds no moment to get in."""
        async for chunk in self._answer.aiter_stream():
            if self._gone:
                return
            yield chunk


ROUTES = [
    Route(BASE + "/{path:path}", pass_on, methods=METHODS, include_in_schema=False),
    Route(BASE, pass_on, methods=METHODS, include_in_schema=False),
    WebSocketRoute(BASE + "/{path:path}", pass_on_socket),
    WebSocketRoute(BASE, pass_on_socket),
]
