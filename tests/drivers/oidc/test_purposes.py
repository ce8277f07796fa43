"""An access token opens doors, an ID token does not: at real providers, and in the forms issuers are known for."""

from typing import Any

import pytest

from drivers.oidc.hand_clock import OpenVerifier
from drivers.oidc.trusted import trusted
from hansa.drivers.oidc.purposes import what_else
from hansa.identity import errors
from real.identity_provider import IdentityProvider
from real.rogue_issuer import rogue_issuer

WHO = {"iss": "https://issuer.test", "sub": "62bb11b4@test", "exp": 2, "iat": 1, "name": "Alice"}

# What their documentation and their sources say, without the claims that are the same everywhere.
ACCESS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Keycloak": ({"typ": "JWT"}, {"typ": "Bearer", "azp": "portal", "aud": "account", "scope": "openid", "sid": "s"}),
    "Keycloak before 24": ({"typ": "JWT"}, {"typ": "Bearer", "azp": "portal", "aud": "account", "nonce": "n"}),
    "Keycloak for one client": ({"typ": "JWT"}, {"typ": "Bearer", "azp": "hansa", "aud": "hansa", "scope": "openid"}),
    "Check-in, on Keycloak": ({"typ": "JWT"}, {"typ": "Bearer", "azp": "token-portal", "scope": "openid", "jti": "j"}),
    "Check-in, on MITREid": ({}, {"azp": "token-portal", "scope": "openid offline_access", "jti": "j"}),
    "INDIGO IAM": ({}, {"client_id": "portal", "scope": "openid", "aud": "hansa", "jti": "j"}),
    "INDIGO IAM, without scope and audience": ({}, {"jti": "j", "groups": ["vo"]}),
    "RFC 9068": ({"typ": "at+jwt"}, {"aud": "hansa", "client_id": "portal", "jti": "j", "auth_time": 1, "acr": "0"}),
    "RFC 9068, the long form": ({"typ": "application/at+JWT"}, {"aud": "hansa"}),
    "Auth0": ({"typ": "JWT"}, {"aud": ["hansa", "https://tenant/userinfo"], "azp": "portal", "scope": "openid"}),
    "Okta": ({}, {"aud": "api://default", "cid": "portal", "scp": ["openid"], "uid": "u", "ver": 1}),
    "Cognito": ({}, {"token_use": "access", "client_id": "portal", "scope": "openid"}),
    "Microsoft": ({"typ": "JWT"}, {"aud": "api://hansa", "appid": "portal", "scp": "user_impersonation"}),
}
OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Keycloak": ({"typ": "JWT"}, {"typ": "ID", "azp": "portal", "aud": "portal", "at_hash": "h", "sid": "s"}),
    "Keycloak, odd case": ({"typ": "JWT"}, {"typ": "iD", "azp": "portal", "aud": "portal"}),
    "Keycloak's refresh token": ({"typ": "JWT"}, {"typ": "Refresh", "aud": "hansa", "scope": "openid"}),
    "Keycloak's offline token": ({"typ": "JWT"}, {"typ": "Offline", "aud": "hansa", "scope": "openid"}),
    "Keycloak's logout token": ({"typ": "logout+jwt"}, {"typ": "Logout", "aud": "hansa"}),
    "oidc-provider": ({}, {"aud": "portal"}),
    "oidc-provider with a nonce": ({}, {"aud": "portal", "nonce": "n"}),
    "Check-in, on MITREid": ({}, {"aud": "portal", "kid": "oidc", "jti": "j", "at_hash": "h", "auth_time": 1}),
    "INDIGO IAM": ({}, {"aud": "portal", "kid": "rsa1", "jti": "j", "organisation_name": "vo"}),
    "Auth0": ({"typ": "JWT"}, {"aud": "portal", "sid": "s", "nonce": "n", "updated_at": "2026"}),
    "Okta": ({}, {"aud": "portal", "at_hash": "h", "amr": ["pwd"], "ver": 1}),
    "Cognito": ({}, {"token_use": "id", "aud": "portal"}),
    "Google": ({"typ": "JWT"}, {"aud": "portal", "azp": "portal", "at_hash": "h"}),
    "a code's hash": ({"typ": "JWT"}, {"aud": "portal", "c_hash": "h", "scope": "openid"}),
    "proof of a key": ({"typ": "dpop+jwt"}, {"aud": "hansa", "scope": "openid"}),
    "a signed request": ({"typ": "oauth-authz-req+jwt"}, {"aud": "hansa", "scope": "openid", "client_id": "portal"}),
}


@pytest.mark.parametrize("whose", ACCESS)
def test_access_tokens(whose: str) -> None:
    header, claims = ACCESS[whose]
    assert what_else(header, {**WHO, **claims}) == ""


@pytest.mark.parametrize("whose", OTHERS)
def test_other_tokens(whose: str) -> None:
    header, claims = OTHERS[whose]
    assert what_else(header, {**WHO, **claims})


@pytest.mark.parametrize("odd", [5, ["ID"], {"a": 1}, None, True])
def test_odd_kinds_break_nothing(odd: Any) -> None:
    assert what_else({"typ": odd}, {**WHO, "typ": odd, "token_use": odd, "scope": "x"}) == ""


@pytest.mark.parametrize("realm", ["test", "sparse", "egi"])
async def test_a_real_id_token_is_refused(provider: IdentityProvider, open_verifier: OpenVerifier, realm: str) -> None:
    """Also where the audience is waived, and where it is the very client."""
    tokens = provider.tokens_by_browser("alice", realm)
    for audience in (("*",), ("hansa-tests",), ("hansa-tests", "urn:hansa:test")):
        async with open_verifier(trusted(provider.issuer(realm), audience=audience)) as verifier:
            with pytest.raises(errors.NotAnAccessToken) as raised:
                await verifier.verify(tokens["id_token"])
            assert "id_token" in raised.value.hint
            assert tokens["id_token"] not in str(raised.value)
    async with open_verifier(trusted(provider.issuer(realm), audience=("urn:hansa:test",))) as verifier:
        assert (await verifier.verify(tokens["access_token"])).subject == "alice@test"


@pytest.mark.parametrize("whose", OTHERS)
async def test_at_the_door_of_the_verifier(open_verifier: OpenVerifier, whose: str) -> None:
    header, claims = OTHERS[whose]
    async with rogue_issuer() as rogue, open_verifier(trusted(rogue.url)) as verifier:
        token = rogue.token(header={"typ": None, **header}, **claims)
        with pytest.raises(errors.NotAnAccessToken):
            await verifier.verify(token)
