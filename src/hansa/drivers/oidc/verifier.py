"""From a bearer token to an `Identity`: the port `TokenVerifier` for all configured issuers.

The order matters: size and form, then the issuer's name against the settings, and only then its keys; an
issuer nobody configured is never contacted. See `cache` for what remembering tokens means for revocation.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import httpx

from hansa.drivers.oidc.cache import VerifiedTokens, digest
from hansa.drivers.oidc.keys import IssuerKeys
from hansa.drivers.oidc.policy import Policy
from hansa.drivers.oidc.tokens import look_at, verified_claims
from hansa.drivers.oidc.userinfo import Userinfo
from hansa.identity import LONGEST_TOKEN, Identity, errors, groups_in
from hansa.kernel.clock import Clock, SystemClock
from hansa.kernel.errors import Invalid
from hansa.kernel.issuer import IssuerSettings

_LONGEST_NAME = 200
_FAR = 2**52  # JSON knows larger numbers than floats do


class OidcVerifier:
    """Open one per process on an HTTP client of the caller's; `close` it before the client."""

    def __init__(
        self,
        issuers: Sequence[IssuerSettings],
        http: httpx.AsyncClient,
        *,
        policy: Policy | None = None,
        clock: Clock | None = None,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._policy = policy or Policy()
        self._clock = clock or SystemClock()
        self._issuers = {issuer.url: IssuerKeys(issuer, http, self._policy, ticks) for issuer in issuers}
        if len(self._issuers) != len(issuers):
            raise Invalid("an issuer is configured twice", hint="list each address in oidc.issuers once")
        self._userinfo = Userinfo(http, self._policy)
        self._verified = VerifiedTokens(self._policy.remembered_tokens)

    async def verify(self, token: str) -> Identity:
        if len(token) <= LONGEST_TOKEN:
            known = self._verified.get(digest(token), self._clock.now())
            if known is not None:
                return known
        return await self._verify(token)

    async def close(self) -> None:
        await self._userinfo.close()
        for keys in self._issuers.values():
            await keys.close()

    async def _verify(self, token: str) -> Identity:
        seen = look_at(token)
        keys = self._issuers.get(seen.issuer)
        if keys is None:
            raise errors.UnknownIssuer(
                f"tokens of {seen.issuer[:200]!r} are not accepted here",
                hint=f"accepted issuers: {', '.join(self._issuers) or 'none'}",
            )
        issuer, withdrawals = keys.issuer, keys.withdrawals
        candidates = await keys.candidates(seen.key_id)
        claims = verified_claims(token, candidates, issuer, now=self._clock.now(), leeway=self._policy.leeway)
        mark = digest(token)
        claims, complete = await self._complete(token, mark, claims, keys)
        identity = _identity(claims, issuer)
        until = identity.expires + self._policy.leeway
        if not complete:
            until = min(until, self._clock.now() + self._policy.incomplete_for)
        self._verified.put(mark, identity, until, keys, withdrawals)
        return identity

    async def _complete(
        self, token: str, mark: bytes, claims: dict[str, Any], keys: IssuerKeys
    ) -> tuple[dict[str, Any], bool]:
        """The claims with what userinfo adds, if the token does not name the user and their groups itself."""
        issuer = keys.issuer
        groups = groups_in(claims, issuer.url, issuer.groups_claim)
        if groups is not None and claims.get("name"):
            return claims, True
        url = (await keys.documents()).userinfo
        if not url:
            return claims, True
        try:
            more = await self._userinfo.ask(token, mark, url, issuer, claims["sub"])
        except errors.IssuerUnavailable:
            if issuer.groups and groups is None:
                raise  # without groups we could only refuse, and that would be the wrong answer
            return claims, False
        signed = {name: value for name, value in claims.items() if value not in (None, "")}
        return {**more, **signed}, True


def _identity(claims: dict[str, Any], issuer: IssuerSettings) -> Identity:
    groups = groups_in(claims, issuer.url, issuer.groups_claim) or frozenset()
    if issuer.groups and groups.isdisjoint(issuer.groups):
        raise errors.NotInGroup(
            f"you are in none of the groups of {issuer.label} that this cluster serves",
            hint=f"ask for membership in one of: {', '.join(issuer.groups)}",
            issuer=issuer.url,
        )
    return Identity(
        subject=claims["sub"],
        issuer=issuer.url,
        name=_name(claims),
        groups=groups,
        expires=float(min(claims["exp"], _FAR)),
    )


def _name(claims: dict[str, Any]) -> str:
    for claim in ("name", "preferred_username", "sub"):
        value = claims.get(claim)
        if isinstance(value, str) and value.strip():
            return "".join(letter for letter in value if letter.isprintable())[:_LONGEST_NAME]
    return ""
