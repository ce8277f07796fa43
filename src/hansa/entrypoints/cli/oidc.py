"""How does a refresh token become an access token? Called by `session.py` when the one at hand has run out.

The token endpoint is found through the issuer's discovery document. A rotated refresh token is kept, because
the old one stops working.
"""

from dataclasses import replace
from typing import Any

import httpx

from hansa.entrypoints.cli.client import PATIENCE, limits, unreachable
from hansa.entrypoints.cli.profiles import Profile
from hansa.kernel import errors

MARGIN = 30  # seconds before its end from which a token counts as run out
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def is_fresh(profile: Profile, now: float) -> bool:
    return bool(profile.token) and profile.expires_at - MARGIN > now


def renew(profile: Profile, now: float) -> Profile:
    """The profile with a new access token."""
    endpoint = _token_endpoint(profile)
    form = {
        "grant_type": "refresh_token",
        "refresh_token": profile.refresh_token,
        "client_id": profile.client_id,
    }
    answer = _exchange("POST", endpoint, profile, data=form)
    token = answer.get("access_token")
    if not isinstance(token, str) or not token:
        reason = answer.get("error_description") or answer.get("error") or "no reason given"
        raise errors.Unauthenticated(
            f"{profile.issuer} gave no access token: {reason}",
            hint="get a new refresh token and sign in again",
        )
    lifetime = answer.get("expires_in")
    rotated = answer.get("refresh_token")
    return replace(
        profile,
        token=token,
        expires_at=int(now + (lifetime if isinstance(lifetime, int) else 300)),
        refresh_token=rotated if isinstance(rotated, str) and rotated else profile.refresh_token,
    )


def _token_endpoint(profile: Profile) -> str:
    found = _exchange("GET", f"{profile.issuer.rstrip('/')}/.well-known/openid-configuration", profile)
    endpoint = found.get("token_endpoint")
    if not isinstance(endpoint, str):
        raise errors.Invalid(f"{profile.issuer} names no token endpoint", hint="is it an OpenID Connect issuer?")
    return endpoint


def _exchange(method: str, url: str, profile: Profile, **sent: Any) -> dict[str, Any]:
    parsed = httpx.URL(url)
    if parsed.scheme != "https" and parsed.host not in _LOOPBACK:
        raise errors.Invalid(f"{url} is not https", hint="a refresh token must not travel in the clear")
    try:
        with httpx.Client(verify=profile.verify, timeout=limits(PATIENCE)) as http:
            response = http.request(method, url, **sent)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise unreachable(error, "the issuer", url, PATIENCE) from error
    if response.status_code >= 500:
        raise errors.Temporary(f"the issuer answered {response.status_code}", hint="try again later")
    try:
        answer = response.json()
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise errors.Invalid(f"{url} answered {response.status_code} without JSON", hint="is the issuer right?")
    return answer
