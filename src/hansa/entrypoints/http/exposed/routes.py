"""`/system/services/{name}/exposed/…`: everything is passed on to the service's own process, WebSockets too."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any

import structlog
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import Message, Receive, Scope, Send

from hansa.bootstrap import App
from hansa.entrypoints.http.clients import address_of
from hansa.entrypoints.http.document import ADMIN, SERVICE, USER
from hansa.entrypoints.http.exposed import bodies, headers, visitors
from hansa.entrypoints.http.exposed.answers import Answer, NoAnswer
from hansa.entrypoints.http.exposed.limits import Limits
from hansa.entrypoints.http.exposed.origins import Origins
from hansa.entrypoints.http.exposed.paths import BASE, base_of
from hansa.entrypoints.http.exposed.sockets import pass_on_socket
from hansa.entrypoints.http.exposed.transport import Connection, Pool
from hansa.entrypoints.http.exposed.visitors import target
from hansa.entrypoints.http.openapi import answers
from hansa.entrypoints.http.parameters import SERVICE_NAME
from hansa.entrypoints.http.protocol import LET_GO
from hansa.kernel.errors import Forbidden
from hansa.services import Record, reading

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_NOT_SHARED = (b"cache-control", b"private")  # or a proxy's cache would show it to those who may not in
_UNREAD = 60.0  # seconds a visitor may leave an answer lying, beyond what its size needs
_READING = 2 * 1024  # bytes a second that a visitor on the slowest link worth serving takes
_NOTICED = 1.0  # seconds by which the server has noticed that a connection was let go; it ends the answer then
_GONE = 499  # for our own log: nobody hears it
_log = structlog.get_logger("hansa.http")


class _Left(Exception):
    """The visitor did not wait for the answer."""


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
        connection, answer = await _asked(request, record, held)
        kept = headers.outward(answer.headers, base_of(record.service.name), sandboxed=origins.is_sandboxed(request))
        if not visitors.is_open(app, record.service):
            kept.append(_NOT_SHARED)
        return _Relay(_parts(connection, answer, request.scope), answer.status, kept, held.pop_all())
    except NoAnswer as error:
        return PlainTextResponse(
            f"service {record.service.name} did not answer: {error} (see its deployment logs)\n", 502
        )
    except _Left:
        return Response(status_code=_GONE)
    finally:
        held.close()
        app.calls.count_exposed(record.service.name, app.clock.now())


async def _asked(request: Request, record: Record, held: ExitStack) -> tuple[Connection, Answer]:
    """The process's answer, as far as its headers. The body comes first: nobody dials for one that is not there."""
    service, limits = record.service, request.app.state.exposed_limits
    with ExitStack() as upload:
        body = await _body(request, service.name, limits, upload)
        held.enter_context(limits.calls.taken(service.name, address_of(request)))
        pool: Pool = request.app.state.exposed_pools.of(service.name)
        connection = await pool.take()
        held.callback(pool.give_back, connection)
        await connection.send(_said(target(record, request), request, service.name, body))
    return connection, await _unless_left(request, connection)


async def _unless_left(request: Request, connection: Connection) -> Answer:
    """Whoever left waits for nothing any more, and nobody waits for them."""
    asking = asyncio.create_task(connection.head(request.method), name="exposed answer")
    leaving = asyncio.create_task(_until_left(request), name="exposed visitor")
    try:
        await asyncio.wait([asking, leaving], return_when=asyncio.FIRST_COMPLETED)
        if asking.done():
            return asking.result()
        raise _Left
    finally:
        asking.cancel()
        leaving.cancel()
        await asyncio.gather(asking, leaving, return_exceptions=True)


async def _until_left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


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


async def _said(target: bytes, request: Request, service: str, body: bodies.Body | None) -> AsyncIterator[bytes]:
    """What the process gets, as it is written to it."""
    stated = _inward(request, service, body)
    lines = [request.method.encode() + b" " + target + b" HTTP/1.1", *(name + b": " + value for name, value in stated)]
    head = b"\r\n".join([*lines, b"", b""])
    if body is None or body.is_complete:
        yield head + (body.first if body else b"")
        return
    yield head
    is_chunked = "content-length" not in request.headers
    async for part in body.all():
        if part:
            yield b"%x\r\n%b\r\n" % (len(part), part) if is_chunked else part
    if is_chunked:
        yield b"0\r\n\r\n"


def _inward(request: Request, service: str, body: bodies.Body | None) -> list[tuple[bytes, bytes]]:
    raw = request.headers.raw
    stated = [(b"host", request.headers.get("host", service).encode("latin-1")), *headers.inward(raw)]
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

    def __init__(
        self, parts: AsyncIterator[bytes], status: int, kept: list[tuple[bytes, bytes]], held: ExitStack
    ) -> None:
        super().__init__(parts, status)
        self.raw_headers = kept
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size, waited = 0, 0.0

        async def sent(message: Message) -> None:
            nonlocal size, waited
            began = time.monotonic()
            try:
                async with asyncio.timeout(max(0.0, _UNREAD + size / _READING - waited)):
                    await send(message)
            except TimeoutError:
                scope[LET_GO]()  # there is no nicer way to tell somebody who does not listen
            waited += time.monotonic() - began
            size += len(message.get("body", b""))

        try:
            await super().__call__(scope, receive, sent)
        finally:
            self._held.close()


async def _parts(connection: Connection, answer: Answer, scope: Scope) -> AsyncIterator[bytes]:
    try:
        async for part in connection.body(answer):
            yield part
    except NoAnswer as error:
        _log.info("answer broken off", path=scope["path"][:200], error=str(error))
        scope[LET_GO]()  # the only way to say that there is more which will not come
        await asyncio.sleep(_NOTICED)


ROUTES = [
    Route(BASE + "/{path:path}", pass_on, methods=METHODS, include_in_schema=False),
    Route(BASE, pass_on, methods=METHODS, include_in_schema=False),
    WebSocketRoute(BASE + "/{path:path}", pass_on_socket),
    WebSocketRoute(BASE, pass_on_socket),
]
