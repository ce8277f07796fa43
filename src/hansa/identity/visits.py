"""Who may come back to an exposed service for a while without showing credentials again? Whoever holds a visit.

A visit is a signed text for one service and one visitor: `/auth` hands it out as a cookie. It says who the visitor
is, never that they may in: that is decided anew at each use. It ends by itself, and when the service's token changes.
"""

import base64
import hashlib
import hmac
import json

from hansa.identity.caller import Caller
from hansa.kernel.clock import Clock

VISIT_SECONDS = 15 * 60
_LONGEST = 2048
_KINDS = ("admin", "user", "service")


class Visits:
    def __init__(self, key: bytes, clock: Clock) -> None:
        self._key = key
        self._clock = clock

    def issue(self, caller: Caller, *, service: str, token: str) -> str:
        """`token` is the service's own, as it is now; the visit holds only a digest of it."""
        until = int(self._clock.now()) + VISIT_SECONDS
        claims = [service, caller.kind, caller.uid, caller.issuer, self._digest(token), until]
        payload = base64.urlsafe_b64encode(json.dumps(claims, separators=(",", ":")).encode()).rstrip(b"=").decode()
        return f"{payload}.{self._signature(payload)}"

    def caller(self, visit: str, *, service: str, token: str) -> Caller | None:
        """Who holds this visit of this service; None if it is forged, of another service, over or outdated."""
        payload, _, signature = visit.partition(".")
        if len(visit) > _LONGEST or not visit.isascii():
            return None
        if not hmac.compare_digest(signature, self._signature(payload)):
            return None
        made_for, kind, uid, issuer, digest, until = json.loads(base64.urlsafe_b64decode(payload + "=="))
        is_current = made_for == service and digest == self._digest(token) and self._clock.now() < until
        if not is_current or kind not in _KINDS:
            return None
        return Caller(kind=kind, uid=uid, name=uid, issuer=issuer, service=service if kind == "service" else "")

    def _signature(self, payload: str) -> str:
        return hmac.new(self._key, f"visit {payload}".encode(), hashlib.sha256).hexdigest()

    def _digest(self, token: str) -> str:
        """With our key: the token cannot be told from it, nor be guessed."""
        return hmac.new(self._key, f"token {token}".encode(), hashlib.sha256).hexdigest()[:32]
