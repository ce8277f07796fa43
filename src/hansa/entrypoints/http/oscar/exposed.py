"""`/system/services/{name}/exposed/…`: everything is passed on to the service's own process, WebSockets too."""

import asyncio
import base64
import binascii
import time
from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qs

import httpcore
import websockets
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from hansa.bootstrap import App
from hansa.entrypoints.http.document import SERVICE
from hansa.entrypoints.http.openapi import answers
from hansa.entrypoints.http.oscar.services import cookie_name
from hansa.entrypoints.http.parameters import SERVICE_NAME
from hansa.identity import same_secret
from hansa.kernel.errors import HansaError, Unauthenticated
from hansa.services import Invocation, Record, ServiceNotFound

BASE = "/system/services/{name}/exposed"
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
     "upgrade", "host", "content-length"}
)  # fmt: skip
_LIMITS = {"connect": 5.0, "read": 300.0, "write": 60.0, "pool": 10.0}


def _described() -> dict[str, Any]:
    """For the OpenAPI document: whatever the process answers, or why it cannot."""
    operation: dict[str, Any] = {
        "tags": ["exposed"],
        "summary": "Passed on to the service's own process",
        "description": "Open to everybody unless the service sets `expose.set_auth`: then its token is asked for, as "
        "bearer or as Basic password of a user named like the service. WebSockets are passed on too.",
        "parameters": [
            {"name": "name", "in": "path", "required": True, "schema": {"type": "string", **SERVICE_NAME}},
            {"name": "path", "in": "path", "required": True, "schema": {"type": "string"}},
        ],
        "security": [{}, {SERVICE: []}],
        "responses": {
            **{str(status): answer for status, answer in answers(401, 404, 502).items()},
            "default": {"description": "The process's own answer"},
        },
    }
    return {f"{BASE}/{{path}}": dict.fromkeys(("get", "post", "put", "patch", "delete"), operation)}


DESCRIBED = _described()


def _exposed(app: App, name: str) -> Record:
    record = app.room.records.get(name)
    if record is None or record.phase != "ready" or not record.service.exposed:
        raise ServiceNotFound(f"there is no exposed service {name[:60]!r}")
    return record


def _check_visitor(record: Record, headers: Headers, query: str) -> None:
    """Services with `set_auth` let in who knows the service token; others are open, as in OSCAR."""
    service = record.service
    if not service.expose.set_auth:
        return
    given: list[str] = []
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        given.append(value.strip())
    elif scheme.lower() == "basic":
        try:
            user, _, password = base64.b64decode(value, validate=True).decode().partition(":")
        except (binascii.Error, ValueError):
            user, password = "", ""
        if user == service.name:
            given.append(password)
    if service.expose.auth_type == "forward":
        given += parse_qs(query).get("token", [])[:1]
        cookie = SimpleCookie(headers.get("cookie", "")).get(cookie_name(service.name))
        given += [cookie.value] if cookie else []
    if not any(same_secret(one, service.token) for one in given):
        raise Unauthenticated(
            f"service {service.name} asks for credentials",
            hint="user: the service's name, password: its token",
        )


def _inner_path(record: Record, raw_path: bytes, query: bytes) -> bytes:
    """`rewrite_target` hides the prefix from the process; otherwise it sees the whole path."""
    if record.service.expose.rewrite_target:
        prefix = f"/system/services/{record.service.name}/exposed".encode()
        raw_path = raw_path.removeprefix(prefix) or b"/"
    return raw_path + (b"?" + query if query else b"")


async def pass_on(request: Request) -> Response:
    app: App = request.app.state.hansa
    name = request.path_params["name"]
    record = _exposed(app, name)
    _check_visitor(record, request.headers, request.url.query)
    started = time.perf_counter()
    status = 502
    headers = [(k, v) for k, v in request.headers.raw if k.decode("latin-1").lower() not in _HOP_BY_HOP]
    headers.append((b"host", request.headers.get("host", name).encode()))
    headers.append((b"x-forwarded-prefix", f"/system/services/{name}/exposed".encode()))
    if request.client:
        headers.append((b"x-forwarded-for", request.client.host.encode()))
    if (length := request.headers.get("content-length")) is not None:
        headers.append((b"content-length", length.encode()))
    elif "transfer-encoding" in request.headers:
        headers.append((b"transfer-encoding", b"chunked"))
    target = _inner_path(
        record, request.scope.get("raw_path") or request.url.path.encode(), request.scope["query_string"]
    )
    has_body = "content-length" in request.headers or "transfer-encoding" in request.headers
    inner = httpcore.Request(
        request.method,
        httpcore.URL(scheme=b"http", host=name.encode(), port=record.service.expose.port, target=target),
        headers=headers,
        content=request.stream() if has_body else b"",
        extensions={"timeout": _LIMITS},
    )
    try:
        answer = await request.app.state.exposed_pools.of(name).handle_async_request(inner)
        status = answer.status
        kept = [
            (k, v) for k, v in answer.headers if k.decode("latin-1").lower() not in _HOP_BY_HOP - {"content-length"}
        ]
        reply = StreamingResponse(_relay(answer), status)
        reply.raw_headers = kept
        return reply
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
        text = f"service {name} did not answer: {type(error).__name__}"
        return PlainTextResponse(f"{text} (see its deployment logs)\n", 502)
    finally:
        client = request.client.host if request.client else ""
        path = request.url.path[:1024]
        app.note(
            Invocation(
                time.time(),
                "exposed",
                name,
                "",
                status,
                time.perf_counter() - started,
                client,
                request.method,
                path,
            )
        )


async def _relay(answer: httpcore.Response) -> AsyncIterator[bytes]:
    try:
        async for chunk in answer.aiter_stream():
            yield chunk
    finally:
        await answer.aclose()


async def pass_on_socket(visitor: WebSocket) -> None:
    app: App = visitor.app.state.hansa
    name = visitor.path_params["name"]
    try:
        record = _exposed(app, name)
        _check_visitor(record, visitor.headers, visitor.url.query)
        sock = await app.room.exposed_host.connect(name)
    except HansaError as error:
        await visitor.close(1008, error.message[:120])
        return
    raw_path = visitor.scope.get("raw_path") or visitor.url.path.encode()
    target = _inner_path(record, raw_path, visitor.scope["query_string"]).decode("latin-1")
    protocols = [websockets.Subprotocol(p) for p in visitor.scope.get("subprotocols", [])]
    try:
        async with websockets.connect(
            f"ws://{name}{target}", sock=sock, subprotocols=protocols or None, open_timeout=10, max_size=16 * 2**20,
            additional_headers={k: v for k, v in visitor.headers.items() if k in ("cookie", "origin")},
        ) as inner:  # fmt: skip
            await visitor.accept(inner.subprotocol)
            async with asyncio.TaskGroup() as tasks:
                outward = tasks.create_task(_outward(inner, visitor), name=f"exposed {name} out")
                tasks.create_task(_inward(visitor, inner, outward), name=f"exposed {name} in")
    except* (WebSocketDisconnect, websockets.ConnectionClosed, RuntimeError):
        pass  # either side left
    except* (OSError, TimeoutError, websockets.WebSocketException):
        await visitor.close(1011, "the service did not answer")


async def _outward(inner: websockets.ClientConnection, visitor: WebSocket) -> None:
    async for message in inner:
        await (visitor.send_text(message) if isinstance(message, str) else visitor.send_bytes(message))
    await visitor.close(1000)


async def _inward(visitor: WebSocket, inner: websockets.ClientConnection, outward: "asyncio.Task[None]") -> None:
    while True:
        message = await visitor.receive()
        if message["type"] == "websocket.disconnect":
            await inner.close()
            return
        if outward.done():
            return
        text, data = message.get("text"), message.get("bytes")
        await inner.send(text if text is not None else data or b"")


ROUTES = [
    Route(BASE + "/{path:path}", pass_on, methods=METHODS, include_in_schema=False),
    Route(BASE, pass_on, methods=METHODS, include_in_schema=False),
    WebSocketRoute(BASE + "/{path:path}", pass_on_socket),
    WebSocketRoute(BASE, pass_on_socket),
]
