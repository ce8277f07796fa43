"""`/member/v1/heartbeat` and `/member/v1/desired`: what members report, and what they should know.

Thousands of clusters ask these two all day long, so they go past the framework, which would cost several times what
they do, and leave no line in the log unless something is wrong. All else goes on to the framework.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import cast
from urllib.parse import parse_qsl
from weakref import WeakValueDictionary

import msgspec
import structlog
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hansa.bootstrap import HubApp
from hansa.entrypoints.http import in_flight, problems
from hansa.entrypoints.http.hub.tls import Member, member_of
from hansa.entrypoints.http.in_flight import InFlight
from hansa.entrypoints.http.pieces import send_in_pieces
from hansa.entrypoints.http.wire import decode_native, read_body
from hansa.federation import Known, desired, heartbeats, standing
from hansa.identity import authority
from hansa.kernel.errors import HansaError, Invalid
from hansa.messages.members import Heartbeat

# Bytes of an answer that may wait to be sent: TLS keeps a buffer as large as what ever waited in it, and there are two
# connections for each of thousands of members.
WAITING = 8192
HEARTBEAT = "/member/v1/heartbeat"
SHORT = 64 * 1024  # bytes of a heartbeat that is read at once
_LARGEST = 8 * 2**20
_MOST_PARTS = 500_000  # in all sections: some ten thousand nodes
_LONGEST_WAIT = 60.0
_LATEST = 2**62
_NOTHING_NEW = (204, b"")
_encode = msgspec.json.Encoder().encode
_log = structlog.get_logger("hansa.http")

_Answer = tuple[int, bytes]
_Way = Callable[[Scope, Receive, Member], Awaitable[_Answer]]


class Shortcut:
    """Plain ASGI."""

    def __init__(self, app: HubApp, rest: ASGIApp, bodies: InFlight) -> None:
        self._app = app
        self._bodies = bodies
        self._rest = rest
        self._large: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by cluster, while one is read
        self._ways: Mapping[tuple[str, str], _Way] = {
            ("POST", HEARTBEAT): self._heartbeat,
            ("GET", "/member/v1/desired"): self._desired,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        way = self._ways.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if way is None:
            await self._rest(scope, receive, send)
            return
        claim = in_flight.make_claim(scope, self._bodies)
        try:
            status, body = await way(scope, receive, await member_of(self._app.hub, scope))
        except HansaError as error:
            await _refuse(error, scope, receive, send)
            return
        finally:
            claim.close()  # what was heard is kept by now
        headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")] if body else []
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send_in_pieces(send, {"type": "http.response.body", "body": body}, WAITING)

    def heard_at_once(self, shown: authority.Presented, body: bytes) -> bytes | None:
        """The answer to a heartbeat, if nothing has to be waited for and nothing is wrong with it."""
        try:
            known = standing.member_at_once(self._app.hub, shown)
            return None if known is None else self._hear(known, shown, _decode(body))
        except Exception:  # whoever answers it the long way finds the same, and says it well
            return None

    async def _heartbeat(self, scope: Scope, receive: Receive, member: Member) -> _Answer:
        ident, shown = member.known.id, member.shown
        beat = await self._read(ident, await _body(scope, receive, ident))
        known = heartbeats.member(self._app.hub, ident, shown.serial)  # it may have been removed meanwhile
        return 200, self._hear(known, shown, beat)

    async def _read(self, cluster: str, body: bytes) -> Heartbeat:
        """A large one takes its time, which is not the others': in a thread, and one of each cluster at a time."""
        if len(body) <= SHORT:
            return _decode(body)
        async with self._large.setdefault(cluster, asyncio.Lock()):
            return await asyncio.to_thread(_decode, body)

    def _hear(self, known: Known, shown: authority.Presented, beat: Heartbeat) -> bytes:
        """How a cluster is: answered from memory, written down with others a moment later."""
        heard = heartbeats.hear(self._app.hub, known, beat, shown.serial)
        self._app.telemetry.heartbeats.inc()
        return _encode(heard)

    async def _desired(self, scope: Scope, _receive: Receive, member: Member) -> _Answer:
        """As soon as there is anything newer than `after`; 204 if there is nothing within `wait` seconds."""
        after, wait = _asked(scope["query_string"])
        found = await desired.newer(self._app.hub, member.known.id, after, wait)
        return _NOTHING_NEW if found is None else (200, _encode(found))


def _decode(body: bytes) -> Heartbeat:
    return decode_native(body, Heartbeat, _MOST_PARTS)


async def _body(scope: Scope, receive: Receive, cluster: str) -> bytes:
    """Mostly it is all there by now; one that trickles in is read with all due care."""
    first = await receive()
    if first["type"] == "http.request" and not first.get("more_body"):
        body = cast(bytes, first.get("body", b""))
        if len(body) <= _LARGEST:
            return body
    return await read_body(Request(scope, _once_more(first, receive)), _LARGEST, cluster)


def _once_more(first: Message, receive: Receive) -> Receive:
    """`receive`, beginning with what it gave already."""
    waiting = [first]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def _asked(query: bytes) -> tuple[int, float]:
    """(after, wait)"""
    given = dict(parse_qsl(query.decode("latin-1")))
    try:
        after, wait = int(given.get("after", "0")), float(given.get("wait", "0"))
    except ValueError:
        raise Invalid("`after` and `wait` are numbers") from None
    if not (0 <= after <= _LATEST and 0 <= wait <= _LONGEST_WAIT):
        raise Invalid(f"`after` is a generation, `wait` up to {_LONGEST_WAIT:g} seconds")
    return after, wait


async def _refuse(error: HansaError, scope: Scope, receive: Receive, send: Send) -> None:
    answer = await problems.as_answer(Request(scope), error)
    path = scope["path"]
    _log.info("refused", path=path, status=answer.status_code, code=error.code, error=error.message)
    await answer(scope, receive, send)
