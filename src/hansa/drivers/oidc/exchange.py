"""From a refresh token to an access token, by discovery, at any provider; and its revocation (RFC 6749, 7009).

Only configured issuers are asked, at the addresses their own discovery document names, which must be https or on this
machine. A refresh token goes into a form's body, never into an address, an error or a log.
"""

import base64
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlsplit

import httpx

from hansa.drivers.oidc.discovery import read_about
from hansa.drivers.oidc.fetching import NotReached, Reply, post_form
from hansa.drivers.oidc.policy import Policy
from hansa.identity import LONGEST_TOKEN, errors
from hansa.kernel.clock import Clock, SystemClock
from hansa.kernel.issuer import IssuerSettings
from hansa.services import credentials

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_CODE = re.compile(r"[a-z_]{1,60}")
_PRINTABLE = re.compile(r"[\x21-\x7e]+")  # what can stand in a header without changing it
_LIFE = 60.0  # seconds we give a token whose life nobody tells
_LONGEST_LIFE = 7 * 86_400.0
_FORMS_SUPPORTED = "token_endpoint_auth_methods_supported"
_CLIENT = "set client_id (and client_secret, if it has one) of this issuer in oidc.issuers"


@dataclass(frozen=True, slots=True)
class _Endpoints:
    token: str
    revocation: str  # "" where the issuer has none
    secret_in_form: bool
    read: float


@dataclass(frozen=True, slots=True)
class _Client:
    ident: str
    secret: str = field(default="", repr=False)

    def sign(self, form: Mapping[str, str], in_form: bool) -> tuple[dict[str, str], dict[str, str]]:
        """The form and headers with which this client asks."""
        if not self.secret:
            return {**form, "client_id": self.ident}, {}
        if in_form:
            return {**form, "client_id": self.ident, "client_secret": self.secret}, {}
        pair = f"{quote_plus(self.ident)}:{quote_plus(self.secret)}"  # encoded first, as RFC 6749 2.3.1 demands
        return dict(form), {"authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


class OidcExchange:
    """The port `credentials.TokenExchange`, on an HTTP client of the caller's."""

    def __init__(
        self,
        issuers: Sequence[IssuerSettings],
        http: httpx.AsyncClient,
        *,
        policy: Policy | None = None,
        clock: Clock | None = None,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._issuers = {issuer.url: issuer for issuer in issuers}
        self._http = http
        self._policy = policy or Policy()
        self._clock = clock or SystemClock()
        self._ticks = ticks
        self._endpoints: dict[str, _Endpoints] = {}

    @property
    def issuers(self) -> Sequence[str]:
        return tuple(self._issuers)

    async def exchange(self, issuer: str, refresh_token: str) -> credentials.Exchanged:
        settings = self._trusted(issuer)
        client = _client(settings, refresh_token)
        endpoints = await self._discover(settings)
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        reply = await self._post(settings, endpoints.token, client, form, endpoints)
        if reply.status != 200:
            raise _refusal(settings, reply)
        return self._exchanged(settings, reply.json(), refresh_token)

    async def revoke(self, issuer: str, refresh_token: str) -> bool:
        settings = self._trusted(issuer)
        client = _client(settings, refresh_token)
        endpoints = await self._discover(settings)
        if not endpoints.revocation:
            return False
        form = {"token": refresh_token, "token_type_hint": "refresh_token"}
        reply = await self._post(settings, endpoints.revocation, client, form, endpoints)
        if reply.status != 200:
            raise _refusal(settings, reply)
        return True

    def _trusted(self, issuer: str) -> IssuerSettings:
        settings = self._issuers.get(issuer)
        if settings is None:
            raise credentials.ClientRefused("the issuer is not one of those configured", "see oidc.issuers")
        return settings

    async def _discover(self, issuer: IssuerSettings) -> _Endpoints:
        known = self._endpoints.get(issuer.url)
        if known is not None and self._ticks() - known.read < self._policy.keys_fresh:
            return known
        try:
            about = await read_about(self._http, issuer, self._policy)
        except errors.IssuerUnavailable as error:
            if known is not None:
                return known  # an issuer rarely moves, and its token endpoint may well be up
            raise credentials.Unreachable(error.message) from None
        token = _address(about, "token_endpoint", issuer)
        if not token:
            raise credentials.ClientRefused(f"the issuer {issuer.label} names no token endpoint", "ask its operator")
        methods = about.get(_FORMS_SUPPORTED)
        in_form = isinstance(methods, list) and "client_secret_basic" not in methods
        revocation = _address(about, "revocation_endpoint", issuer)
        self._endpoints[issuer.url] = _Endpoints(token, revocation, in_form, self._ticks())
        return self._endpoints[issuer.url]

    async def _post(
        self, issuer: IssuerSettings, url: str, client: _Client, form: Mapping[str, str], endpoints: _Endpoints
    ) -> Reply:
        signed, headers = client.sign(form, endpoints.secret_in_form)
        try:
            reply = await post_form(self._http, url, self._policy, signed, headers)
        except errors.IssuerUnavailable as error:
            raise credentials.Unreachable(error.message, asked=not isinstance(error, NotReached)) from None
        if reply.status >= 500 or reply.status in (408, 425, 429):
            raise credentials.Unreachable(f"the issuer {issuer.label} answered {reply.status}", asked=True)
        return reply

    def _exchanged(self, issuer: IssuerSettings, told: dict[str, Any], given: str) -> credentials.Exchanged:
        access, successor = told.get("access_token"), told.get("refresh_token")
        if not _usable(access) or str(told.get("token_type", "bearer")).lower() != "bearer":
            raise credentials.Unreachable(f"the issuer {issuer.label} answered no usable bearer token", asked=True)
        assert isinstance(access, str)
        rotated = successor if isinstance(successor, str) and successor and successor != given else None
        return credentials.Exchanged(access, self._life(told.get("expires_in"), access), rotated)

    def _life(self, told: Any, access: str) -> float:
        """Seconds the access token lives: as told, else as it says itself, else a minute."""
        if isinstance(told, str) and told.isascii() and told.isdigit() and len(told) < 12:
            told = int(told)  # some providers write a text
        if isinstance(told, bool) or not isinstance(told, int | float):
            expires = credentials.unverified_claims(access).get("exp")
            told = expires - self._clock.now() if isinstance(expires, int | float) else _LIFE
        return float(min(max(told, 0.0), _LONGEST_LIFE))


def _usable(token: Any) -> bool:
    return isinstance(token, str) and len(token) <= LONGEST_TOKEN and bool(_PRINTABLE.fullmatch(token))


def _client(issuer: IssuerSettings, refresh_token: str) -> _Client:
    """A JWT was made for the client it names; an opaque token for the one the settings name."""
    named = credentials.unverified_claims(refresh_token).get("azp")
    if isinstance(named, str) and named and named != issuer.client_id:
        return _Client(named[:255])  # somebody else's client, such as oidc-agent's: our secret is not for it
    if not issuer.client_id:
        raise credentials.ClientRefused(
            f"the refresh token does not say which client of {issuer.label} it is for, and the settings do not either",
            _CLIENT,
        )
    return _Client(issuer.client_id, issuer.client_secret.get_secret_value())


def _refusal(issuer: IssuerSettings, reply: Reply) -> Exception:
    """Only the code is repeated: a description is free text and might quote what was sent."""
    code = reply.json().get("error")
    if code == "invalid_grant":
        return credentials.InvalidGrant()
    said = code if isinstance(code, str) and _CODE.fullmatch(code) else f"status {reply.status}"
    return credentials.ClientRefused(f"the issuer {issuer.label} refuses this manager as a client: {said}", _CLIENT)


def _address(about: Mapping[str, Any], name: str, issuer: IssuerSettings) -> str:
    url = about.get(name)
    if not isinstance(url, str) or not url:
        return ""
    try:
        parts = urlsplit(url)
        safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
        fits = safe and bool(parts.hostname) and parts.username is None
        local = issuer.url.startswith("http://") or parts.scheme == "https"  # not less secure than the issuer itself
    except ValueError:
        fits = local = False
    if not (fits and local):
        raise credentials.ClientRefused(
            f"the issuer {issuer.label} names a {name} that is neither https nor on this machine",
            "tokens are sent over TLS only; ask the issuer's operator",
        )
    return url
