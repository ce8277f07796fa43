"""What is a token for? Only an access token lets anybody in; an ID token is a message to a client about its user.

No one field says so in all issuers' tokens, so this goes from what is certain to what is likely: an ID token always has
an audience, and an access token says somewhere what it allows or to whom it was given. An ID token that an issuer
furnishes with such a claim passes here: against it, and against tokens made for other services, the audience helps.
"""

from collections.abc import Mapping
from typing import Any

_FOR_OTHERS = frozenset({"id", "refresh", "offline", "logout"})  # Keycloak says so in the claim `typ`
# OpenID Connect Core 3.1.3.6 and 3.3.2.11 define these for ID tokens. Older Keycloaks repeat the nonce in access
# tokens, which say by `typ` what they are.
_OF_ID_TOKENS = ("at_hash", "c_hash", "s_hash", "nonce")
# RFC 9068 and its likes at INDIGO IAM and MITREid (scope, client_id), Okta (scp, cid), Microsoft (scp, appid).
_OF_ACCESS_TOKENS = ("scope", "scp", "client_id", "cid", "appid")


def what_else(header: Mapping[str, Any], claims: Mapping[str, Any]) -> str:
    """Why the token is no access token, in words; "" if it is one."""
    kind, media = _word(claims.get("typ")), _word(header.get("typ")).removeprefix("application/")
    if kind in _FOR_OTHERS:
        return f"its typ is {kind}"
    if media.endswith("+jwt") and media != "at+jwt":
        return f"its header says {media[:40]}"
    if kind == "bearer" or media == "at+jwt":  # Keycloak; RFC 9068
        return ""
    use = _word(claims.get("token_use"))  # Cognito
    if use:
        return "" if use == "access" else f"its token_use is {use[:40]}"
    found = [name for name in _OF_ID_TOKENS if claims.get(name) is not None]
    if found:
        return f"it has {found[0]}, as ID tokens do"
    if claims.get("aud") and not any(claims.get(name) for name in _OF_ACCESS_TOKENS):
        return "nothing in it says what it allows, as in ID tokens"
    return ""


def _word(value: Any) -> str:
    return value.lower() if isinstance(value, str) else ""
