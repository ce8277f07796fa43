"""How do members and the hub know each other on the wire? The members' listener, and who is behind a request.

Certificates and roots change while connections come in: each handshake takes the newest, by the callback that TLS has
for choosing a certificate. OpenSSL then also verifies the client's certificate by the roots of that newest context
(a test looks at this). Connections that are there already go on; what they may still do is asked for every request.
"""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, cast

import structlog
from fastapi import Depends, Request
from starlette.types import Scope

from hansa.bootstrap import HubApp
from hansa.entrypoints.http.protocol import Protocol
from hansa.federation import Hub, Known, errors, standing
from hansa.identity import authority

_log = structlog.get_logger("hansa.hub")
_HOUR = 3600.0
_EXTENSION = "hansa.certificate"
# Bytes of an answer that may wait to be sent: TLS keeps a buffer as large as what ever waited in it, and there are two
# connections for each of thousands of members.
WAITING = 8192


class MembersTls:
    """What a handshake begins with: the hub's certificate and the roots, made anew when they change or grow old."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._version = 0
        self._made = self._renew_at = 0.0
        self._newest = self._make()
        self.context = self._make()
        self.context.sni_callback = self._choose

    def _choose(self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _base: ssl.SSLContext) -> None:
        # A clock that was wrong may have been set back, and members do not take a certificate of tomorrow.
        if self._hub.trust.version != self._version or not self._made <= self._hub.clock.now() < self._renew_at:
            try:
                self._newest = self._make()
            except Exception:  # the former is most likely still good, and no reason to let nobody in
                _log.exception("the hub's certificate cannot be renewed")
        connection.context = self._newest

    def _make(self) -> ssl.SSLContext:
        trust, now = self._hub.trust, self._hub.clock.now()
        version, life = trust.version, self._hub.settings.certificate_hours * _HOUR
        issued, key = authority.sign_hub(trust.active, trust_domain=trust.domain, now=now, seconds=life)
        context = authority.contexts.for_hub(issued.chain, key, trust.roots)
        self._version, self._made, self._renew_at = version, now, now + (issued.until - now) / 2
        return context


_CONTINUE = b"HTTP/1.1 100"


class MembersProtocol(Protocol):
    """Reads the client's certificate once for each connection, and shows it with every request."""

    _shown: authority.Presented | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=WAITING)
        connection = transport.get_extra_info("ssl_object")
        der = connection.getpeercert(binary_form=True) if connection is not None else None
        if der:
            try:
                self._shown = authority.presented(der)
            except authority.NotACluster as error:
                _log.warning("a certificate of ours that names no cluster", error=error.message)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        cast(dict[str, Any], self.scope)["extensions"] = {_EXTENSION: self._shown}

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        if self.cycle is not None and self.cycle.transport is self.transport:
            self.cycle.transport = cast(asyncio.Transport, _InOne(self.transport))

    def on_response_complete(self) -> None:
        if isinstance(self.cycle.transport, _InOne):
            self.cycle.transport.flush()
        super().on_response_complete()


class _InOne:
    """One answer's way out: its head waits for the first part of the body, so that both are encrypted and sent at once.
    For answers as short as those to heartbeats that is a tenth of all they cost."""

    __slots__ = ("_head", "_transport", "_wait")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""
        self._wait = True

    def write(self, data: bytes) -> None:
        if self._wait and not data.startswith(_CONTINUE):
            self._head, self._wait = data, False
            return
        if self._head:
            data, self._head = self._head + data, b""
        self._transport.write(data)

    def flush(self) -> None:
        """Of an answer that has no body."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def shown_by(scope: Scope) -> authority.Presented:
    """The certificate of who asks. Raises `NotAMember` if there is none."""
    shown = scope.get("extensions", {}).get(_EXTENSION)
    if not isinstance(shown, authority.Presented):
        raise errors.NotAMember(
            "this is for members, who show their certificate", hint="join first: hansa cluster join"
        )
    return shown


@dataclass(frozen=True, slots=True)
class Member:
    """Who asks: the cluster, and the certificate it shows."""

    known: Known
    shown: authority.Presented


async def member_of(hub: Hub, scope: Scope, *, late: bool = False) -> Member:
    shown = shown_by(scope)
    return Member(await standing.member(hub, shown, late=late), shown)


def _member(*, late: bool) -> Callable[[Request], Any]:
    async def who_asks(request: Request) -> Member:
        return await member_of(cast(HubApp, request.app.state.hansa).hub, request.scope, late=late)

    return who_asks


MemberDep = Annotated[Member, Depends(_member(late=False))]
# One whose certificate has run out while it was away: it may renew it, and nothing else.
LateMemberDep = Annotated[Member, Depends(_member(late=True))]
