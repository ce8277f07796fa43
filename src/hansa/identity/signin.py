"""From an Authorization header to a `Caller`: Basic is the admin, a bearer is a user of a trusted issuer.

Service tokens are compared by `service_token`, because only the doors of `/job` and `/run` know which service
is asked for. Neither errors nor `repr` ever show a password or a token.
"""

import base64
import binascii
import re
from collections.abc import Collection
from dataclasses import dataclass, field

from hansa.identity.caller import Caller
from hansa.identity.errors import (
    BadCredentials,
    CredentialsMalformed,
    CredentialsMissing,
    TokenMalformed,
    UnknownIssuer,
)
from hansa.identity.ports import TokenVerifier
from hansa.identity.service_token import same_secret
from hansa.identity.throttle import Throttle
from hansa.identity.uids import Uids

LONGEST_TOKEN = 16 * 1024  # Keycloak users in very many groups reach some 8 KiB
_LONGEST_BASIC = 2048
_HOW = "send Authorization: Bearer <access token>, or Basic with the admin's user and password"
_BEARER = re.compile(r"[A-Za-z0-9._~+/-]+=*")


@dataclass(frozen=True, slots=True)
class Basic:
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Bearer:
    token: str = field(repr=False)


def parse_authorization(header: str | None) -> Basic | Bearer:
    """The credentials in a header's value. Whatever is not exactly one of the two forms is refused."""
    if not header or not header.strip(" \t"):
        raise CredentialsMissing("the request has no credentials", hint=_HOW)
    if len(header) > LONGEST_TOKEN + 16:
        raise TokenMalformed(
            f"the Authorization header has {len(header)} characters, more than any token we accept",
            hint=f"tokens have at most {LONGEST_TOKEN} characters; ask the issuer for fewer claims",
        )
    scheme, _, rest = header.strip(" \t").partition(" ")
    match scheme.lower():
        case "basic":
            return _basic(rest.strip(" "))
        case "bearer":
            return _bearer(rest.strip(" "))
        case _:  # the scheme is not repeated: a token without its scheme would be shown
            raise CredentialsMalformed("the Authorization header is neither Basic nor Bearer", hint=_HOW)


def check_admin(given: Basic, admin: Basic) -> Caller:
    """The admin, if user and password both match; how long it takes does not tell which of them was wrong."""
    user_fits = same_secret(given.user, admin.user)
    password_fits = same_secret(given.password, admin.password)
    if not (user_fits & password_fits) or not admin.password:
        raise BadCredentials("the user or password is wrong", hint="check the cluster's admin user and password")
    return Caller.admin()


class SignIn:
    """Sign-in at one manager: its admin, its issuers (None: no OIDC), their people's uids, and the uids of those with
    the admin's view."""

    def __init__(
        self,
        admin: Basic,
        verifier: TokenVerifier | None,
        uids: Uids,
        users_admin: Collection[str] = (),
        throttle: Throttle | None = None,
    ) -> None:
        self._admin = admin
        self._throttle = Throttle() if throttle is None else throttle
        self._verifier = verifier
        self._uids = uids
        self._users_admin = frozenset(users_admin)

    async def caller(self, authorization: str | None, address: str = "") -> Caller:
        """Who sends this header from this address, for the doors that accept both the admin and users (`/system/*`).
        Tokens are not throttled: nobody can guess them."""
        match parse_authorization(authorization):
            case Basic() as given:
                self._throttle.check(address)
                try:
                    admin = check_admin(given, self._admin)
                except BadCredentials:
                    self._throttle.failed(address)
                    raise
                self._throttle.succeeded(address)
                return admin
            case Bearer(token):
                return await self.user(token)

    async def user(self, token: str) -> Caller:
        """Who bears this access token."""
        if self._verifier is None:
            raise UnknownIssuer(
                "this cluster accepts no access tokens", hint="sign in as admin, or configure oidc.issuers"
            )
        identity = await self._verifier.verify(token)
        return Caller.user(identity, self._uids.of(identity.issuer, identity.subject), self._users_admin)


def _basic(encoded: str) -> Basic:
    if len(encoded) > _LONGEST_BASIC:
        raise CredentialsMalformed("the Basic credentials are too long", hint=_HOW)
    try:
        user, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        colon = ""
    if not colon:
        raise CredentialsMalformed("the Basic credentials are not base64 of user:password", hint=_HOW) from None
    return Basic(user, password)


def _bearer(token: str) -> Bearer:
    if not _BEARER.fullmatch(token):
        raise TokenMalformed("the bearer token is empty or has characters no token has", hint=_HOW)
    return Bearer(token)
