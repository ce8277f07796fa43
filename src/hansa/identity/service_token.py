"""The token of one service: 64 hex digits that let the bearer call it as its owner. Doors compare it here."""

import hashlib
import hmac
import secrets

from hansa.identity.caller import Caller
from hansa.identity.errors import BadCredentials

_LENGTH = 64


def new_service_token() -> str:
    return secrets.token_hex(_LENGTH // 2)


def looks_like_service_token(token: str) -> bool:
    """OSCAR's test: any bearer of exactly 64 characters. A JWT is never that short."""
    return len(token) == _LENGTH


def service_caller(given: str, *, service: str, owner: str, expected: str) -> Caller:
    """The caller who presents a service's token. An unknown service has `expected=""`."""
    if not expected or not same_secret(given, expected):
        raise BadCredentials(
            "the service token is not accepted",
            hint="read the token from the service, or use an access token",
        )
    return Caller.of_service(service, owner)


def same_secret(given: str, expected: str) -> bool:
    """Equality in a time that tells nothing of where, or in length, the two differ."""
    return hmac.compare_digest(_digest(given), _digest(expected))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
