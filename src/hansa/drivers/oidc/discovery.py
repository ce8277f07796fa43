"""Where are an issuer's keys and userinfo, and which keys does it sign with? Read from its own documents."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, RSAKey

from hansa.drivers.oidc.fetching import Refused, fetch_json
from hansa.drivers.oidc.policy import Policy
from hansa.identity import errors
from hansa.kernel.issuer import IssuerSettings

# Never `none`, and never HS*: an issuer's public key would be the shared secret.
ALGORITHMS = ("RS256", "RS384", "RS512", "ES256", "ES384", "PS256")
_MOST_KEYS = 64
_SMALLEST_RSA = 2048

SigningKey = RSAKey | ECKey


@dataclass(frozen=True, slots=True)
class IssuerDocuments:
    userinfo: str  # "" when the issuer has none
    keys: dict[str, SigningKey]  # by key id


async def read_about(http: httpx.AsyncClient, issuer: IssuerSettings, policy: Policy) -> dict[str, Any]:
    """The issuer's discovery document, if it is its own. Raises `IssuerUnavailable`."""
    try:
        about = await fetch_json(http, f"{issuer.url}/.well-known/openid-configuration", policy)
    except Refused as refusal:
        raise _unusable(issuer, f"answered {refusal.status}", policy) from None
    if str(about.get("issuer", "")).rstrip("/") != issuer.url:
        raise _unusable(issuer, "speaks for another issuer", policy)
    return about


async def read_documents(http: httpx.AsyncClient, issuer: IssuerSettings, policy: Policy) -> IssuerDocuments:
    """Discovery and keys, both anew: an issuer may move its keys. Raises `IssuerUnavailable`."""
    about = await read_about(http, issuer, policy)
    try:
        certs = _endpoint(about, "jwks_uri", issuer, policy)
        if not certs:
            raise _unusable(issuer, "names no jwks_uri", policy)
        published = await fetch_json(http, certs, policy)
    except Refused as refusal:
        raise _unusable(issuer, f"answered {refusal.status}", policy) from None
    keys = signing_keys(published)
    if not keys:
        raise _unusable(issuer, "publishes no signing key we can use", policy)
    return IssuerDocuments(_endpoint(about, "userinfo_endpoint", issuer, policy), keys)


def signing_keys(published: dict[str, Any]) -> dict[str, SigningKey]:
    """The usable keys of a JWKS. A key we cannot use is passed over: issuers publish keys of many kinds."""
    listed = published.get("keys")
    found: dict[str, SigningKey] = {}
    for entry in listed[:_MOST_KEYS] if isinstance(listed, list) else []:
        key = _signing_key(entry)
        if key is not None:
            key.ensure_kid()
            found.setdefault(str(key.kid), key)
    return found


def _signing_key(entry: Any) -> SigningKey | None:
    if not isinstance(entry, dict) or entry.get("kty") not in {"RSA", "EC"}:
        return None
    if entry.get("use", "sig") != "sig" or entry.get("alg", ALGORITHMS[0]) not in ALGORITHMS:
        return None
    try:
        key = JWKRegistry.import_key(entry)
        if isinstance(key, RSAKey):
            return key if key.public_key.key_size >= _SMALLEST_RSA else None
        return key if isinstance(key, ECKey) else None
    except (JoseError, ValueError, TypeError, KeyError):
        return None


def _endpoint(about: dict[str, Any], name: str, issuer: IssuerSettings, policy: Policy) -> str:
    url = about.get(name)
    if not isinstance(url, str) or not url:
        return ""
    secure = urlsplit(issuer.url).scheme == "https"
    if urlsplit(url).scheme not in ({"https"} if secure else {"http", "https"}):
        raise _unusable(issuer, f"names a {name} that is not as secure as itself", policy)
    return url


def _unusable(issuer: IssuerSettings, what: str, policy: Policy) -> errors.IssuerUnavailable:
    return errors.IssuerUnavailable(
        f"the issuer {issuer.label} {what}",
        hint=f"compare oidc.issuers with {issuer.url}/.well-known/openid-configuration",
        retry_after=policy.retry_pause,
        issuer=issuer.url,
    )
