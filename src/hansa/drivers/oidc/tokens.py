"""Is this token good? Parsing before trust, then signature and claims. No I/O: keys are handed in."""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from joserfc import jwt
from joserfc.errors import ExpiredTokenError, InvalidClaimError, JoseError, MissingClaimError
from joserfc.jws import JWSRegistry

from hansa.drivers.oidc.discovery import ALGORITHMS, SigningKey
from hansa.drivers.oidc.purposes import what_else
from hansa.identity import LONGEST_TOKEN, errors
from hansa.kernel.issuer import IssuerSettings

_LONGEST_SUBJECT = 255  # as OpenID Connect Core says
_GET_ONE = "get a new access token from the issuer"

# Unknown header fields are harmless (`crit` is still obeyed), and some issuers send certificates in theirs.
_REGISTRY = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
_REGISTRY.max_header_length = LONGEST_TOKEN


@dataclass(frozen=True, slots=True)
class Unverified:
    """What a token says of itself before anything is checked: enough to choose the key, not to believe."""

    issuer: str
    key_id: str | None


def look_at(token: str) -> Unverified:
    if len(token) > LONGEST_TOKEN:
        raise _malformed(f"has {len(token)} characters, more than the {LONGEST_TOKEN} we accept")
    parts = token.split(".")
    if len(parts) != 3 or not all(parts[:2]):
        raise _malformed("is not a JWT of three parts")
    header, claims = _json(parts[0]), _json(parts[1])
    algorithm, issuer, key_id = header.get("alg"), claims.get("iss"), header.get("kid")
    if algorithm not in ALGORITHMS:
        raise _malformed(f"is not signed with one of {', '.join(ALGORITHMS)}")
    if not isinstance(issuer, str) or not issuer:
        raise _malformed("names no issuer")
    if key_id is not None and not isinstance(key_id, str):
        raise _malformed("names its key by something that is not text")
    return Unverified(issuer.rstrip("/"), key_id)


def verified_claims(
    token: str,
    keys: Sequence[SigningKey],
    issuer: IssuerSettings,
    *,
    now: float,
    leeway: float,
) -> dict[str, Any]:
    """The claims of an access token that one of `keys` signed and that is valid now, for us."""
    header, claims = _signed(token, keys, issuer)
    wanted: dict[str, jwt.ClaimsOption] = {"exp": {"essential": True}, "sub": {"essential": True}}
    if not issuer.any_audience:
        wanted["aud"] = {"essential": True, "values": list(issuer.audience)}
    rules = jwt.JWTClaimsRegistry(now=int(now), leeway=int(leeway), **wanted)
    try:
        rules.validate(claims)
    except ExpiredTokenError:
        raise errors.TokenExpired(
            f"the token of {issuer.label} has expired", hint=_GET_ONE, issuer=issuer.url
        ) from None
    except (InvalidClaimError, MissingClaimError) as error:
        raise _claim_error(error, issuer) from None
    other = what_else(header, claims)
    if other:
        raise errors.NotAnAccessToken(
            f"the token of {issuer.label} is no access token: {other}",
            hint="send the access_token of the issuer's answer, not the id_token",
            issuer=issuer.url,
        )
    _check_subject(claims["sub"])
    return claims


def _signed(token: str, keys: Sequence[SigningKey], issuer: IssuerSettings) -> tuple[Mapping[str, Any], dict[str, Any]]:
    for key in keys:
        try:
            found = jwt.decode(token, key, registry=_REGISTRY)
            return found.header, found.claims
        except (JoseError, ValueError, TypeError, RecursionError):
            continue  # also where the issuer publishes the key for another algorithm than the token names
    raise errors.BadSignature(
        f"the token is not signed with a key that {issuer.label} publishes",
        hint=f"{_GET_ONE}; after a change of keys try again in a few seconds",
        issuer=issuer.url,
    )


def _claim_error(
    error: InvalidClaimError | MissingClaimError, issuer: IssuerSettings
) -> errors.WrongAudience | errors.TokenNotYetValid | errors.TokenMalformed:
    claim = str(error.claim)
    if claim == "aud":
        wanted = " or ".join(issuer.audience)
        return errors.WrongAudience(
            f"the token of {issuer.label} is not for the audience {wanted}",
            hint=f"ask the issuer for a token with the audience {wanted}",
            issuer=issuer.url,
            audience=wanted,
        )
    if claim in {"nbf", "iat"}:
        return errors.TokenNotYetValid(
            f"the token of {issuer.label} is not valid yet", hint="compare the clocks", issuer=issuer.url
        )
    return _malformed(f"lacks a usable {claim}" if claim in {"exp", "sub"} else "has an unusable claim")


def _check_subject(subject: str) -> None:
    if len(subject) > _LONGEST_SUBJECT or not subject.isprintable():
        raise _malformed("names a subject that is too long or unprintable")


def _json(part: str) -> dict[str, Any]:
    try:
        # `validate` matters: without it, foreign characters are passed over and many texts mean one token.
        text = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
        value = json.loads(text)
    except (binascii.Error, ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise _malformed("is not a JWT: a part of it is not a JSON object") from None
    return value


def _malformed(what: str) -> errors.TokenMalformed:
    return errors.TokenMalformed(f"the token {what}", hint=_GET_ONE)
