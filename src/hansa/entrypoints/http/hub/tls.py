"""How do members and the hub know each other on the wire? The members' listener, and who is behind a request.

Certificates and roots change while connections come in: each handshake takes the newest, by the callback that TLS has
for choosing a certificate. OpenSSL then also verifies the client's certificate by the roots of that newest context
(a test looks at this). Connections that are there already go on; what they may still do is asked for every request.
"""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, cast

import structlog
from fastapi import Depends, Request
from starlette.types import Scope

from hansa.bootstrap import HubApp
from hansa.entrypoints.http.context import log_as
from hansa.federation import Hub, Known, errors, standing
from hansa.identity import authority

_log = structlog.get_logger("hansa.hub")
_HOUR = 3600.0
EXTENSION = "hansa.certificate"  # of the scope: what the client has shown, if anything


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


def shown_by(scope: Scope) -> authority.Presented:
    """The certificate of who asks. Raises `NotAMember` if there is none."""
    shown = scope.get("extensions", {}).get(EXTENSION)
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
        member = await member_of(cast(HubApp, request.app.state.hansa).hub, request.scope, late=late)
        log_as(f"cluster {member.known.record.id}")
        return member

    return who_asks


MemberDep = Annotated[Member, Depends(_member(late=False))]
# One whose certificate has run out while it was away: it may renew it, and nothing else.
LateMemberDep = Annotated[Member, Depends(_member(late=True))]
