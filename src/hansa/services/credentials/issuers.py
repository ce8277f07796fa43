"""With which issuer is a refresh token exchanged? Only ever with one the settings name. Pure."""

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any

from hansa.services.credentials.errors import Misconfigured


def unverified_claims(token: str) -> dict[str, Any]:
    """What a JWT says of itself, {} for an opaque token: enough to choose among trusted issuers, not to believe."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        text = base64.b64decode(parts[1] + "=" * (-len(parts[1]) % 4), altchars=b"-_", validate=True)
        claims = json.loads(text)
    except (binascii.Error, ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def choose(configured: Sequence[str], owners_issuer: str, token: str) -> str:
    """The issuer the owner signed in with; for the admin the one the token names, or the only one there is."""
    if not configured:
        raise Misconfigured(
            "a refresh token is of no use here: no issuer is configured", hint="add the token's issuer to oidc.issuers"
        )
    if owners_issuer:
        return _trusted(configured, owners_issuer, "the owner signed in with an issuer")
    named = unverified_claims(token).get("iss")
    if isinstance(named, str) and named:
        return _trusted(configured, named, "the refresh token names an issuer")
    if len(configured) == 1:
        return configured[0]
    raise Misconfigured(
        "nobody can tell which of the configured issuers the refresh token is from",
        hint="create the service as the user who owns the token, or configure one issuer only",
    )


def _trusted(configured: Sequence[str], issuer: str, who: str) -> str:
    plain = issuer.rstrip("/")
    if plain not in configured:
        raise Misconfigured(
            f"{who} that is not configured here", hint=f"configured are: {', '.join(configured)}; see oidc.issuers"
        )
    return plain
