"""What happens to every request, whichever route it takes: an id, one log line, a measurement, tidy paths, and no
change on behalf of another site's page."""

import re
import time
import uuid

import structlog
from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hansa.entrypoints.http import cross_site, in_flight, problems
from hansa.entrypoints.http.clients import address_of, stranger
from hansa.entrypoints.http.exposed import paths
from hansa.entrypoints.http.in_flight import Claim, InFlight
from hansa.entrypoints.http.pieces import send_in_pieces
from hansa.kernel.errors import HansaError, Temporary

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_NO_SNIFFING = (b"x-content-type-options", b"nosniff")  # what users' scripts print is text, whatever it looks like
_log = structlog.get_logger("hansa.http")
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)


class Door:
    """Plain ASGI: it adds little to a request that does nothing."""

    def __init__(self, app: ASGIApp, registry: CollectorRegistry, bodies: InFlight, own_url: str = "") -> None:
        self._app = app
        self._own_url = own_url
        self._bodies = bodies
        self._seconds = Histogram(
            "hansa_http_request_seconds",
            "Time to answer",
            ["method", "route"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._answers = Counter("hansa_http_answers", "Answers given", ["method", "route", "status"], registry=registry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        path: str = scope["path"]
        is_tenants = "/exposed" in path and bool(paths.service_in(path))
        if scope["method"] == "HEAD" and not is_tenants:
            scope = {**scope, "method": "GET"}  # the server leaves the body out
        if len(path) > 1 and path.endswith("/") and scope["method"] != "DELETE" and not is_tenants:
            # Clients call /system/config/ as well as /system/config. Whoever deletes may have an empty name instead:
            # /system/logs/x/ must not delete all jobs of x.
            scope["path"] = path[:-1]
        request_id = _given_id(scope) or uuid.uuid4().hex[:16]
        # whoever finds out who asks says so: `context.log_caller`
        structlog.contextvars.bind_contextvars(request_id=request_id, client=address_of(Request(scope)), caller="-")
        claim = in_flight.make_claim(scope, self._bodies)
        # of a tenant's page no more is in memory than a piece
        answer = _Answer(send, request_id, scope, None if is_tenants else claim)
        try:
            if scope["method"] not in cross_site.SAFE and not is_tenants:
                cross_site.check(path, scope["headers"], self._own_url)
            await self._app(scope, receive, answer.send)
            if answer.refused is not None:
                await answer.refuse(answer.refused, receive)
        except cross_site.CrossSite as error:
            await answer.refuse(error, receive)
        finally:
            claim.close()
            self._note(scope, answer.status, time.perf_counter() - started)
            structlog.contextvars.clear_contextvars()

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if route != "other" else "other"  # names somebody made up must not grow the metrics
        self._seconds.labels(method, route).observe(seconds)
        self._answers.labels(method, route, str(status)).inc()
        level = _log.warning if status >= 500 else _log.info
        level(
            "request",
            method=scope["method"],
            path=scope["path"][:200],
            status=status,
            ms=round(seconds * 1000, 2),
        )


class _Answer:
    """One answer on its way out. Where there is no room for it, nothing of it is sent, and `refused` says why."""

    def __init__(self, send: Send, request_id: str, scope: Scope, claim: Claim | None) -> None:
        self._send = send
        self._added = [(b"x-request-id", request_id.encode()), _NO_SNIFFING]
        self._scope = scope
        self._claim = claim
        self.status = 500
        self.refused: Temporary | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if self._claim is not None and not self._has_room(message, self._claim):
                return
            self.status = message["status"]
            message["headers"] = [*message["headers"], *self._added]
            await self._send(message)
        elif self.refused is None:
            await send_in_pieces(self._send, message)

    async def refuse(self, error: HansaError, receive: Receive) -> None:
        self.refused = None
        answer = await problems.as_answer(Request(self._scope), error)
        await answer(self._scope, receive, self.send)

    def _has_room(self, message: Message, claim: Claim) -> bool:
        size = _length(message)
        sender = claim.sender or (stranger(Request(self._scope)) if size > in_flight.FREE else "")
        try:
            claim.answer(sender, size)
        except Temporary as error:
            self.refused = error
        return self.refused is None


def _length(message: Message) -> int:
    """Of an answer that is there as a whole; 0 of one that is made as it goes."""
    return next((int(value) for name, value in message["headers"] if name == b"content-length"), 0)


def _given_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            return bytes(value).decode()
    return ""
