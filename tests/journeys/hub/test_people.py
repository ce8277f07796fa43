"""At the hub a person is issuer and subject too: it remembers whose plain subjects it knows."""

import json
from collections.abc import Iterator

import pytest

from real import parts
from real.hub import StartHub
from real.identity_provider import AUDIENCE, IdentityProvider, identity_provider


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    parts.require("node")
    parts.require("npm")
    with identity_provider(realms={"test": {}, "second": {}}) as running:
        yield running


def trusting(provider: IdentityProvider, *realms: str) -> str:
    return json.dumps([{"url": provider.issuer(realm), "audience": AUDIENCE} for realm in realms])


def test_a_hub_keeps_its_home_issuer(start_hub: StartHub, provider: IdentityProvider) -> None:
    hub = start_hub({"oidc.issuers": trusting(provider, "test", "second"), "oidc.users_admin": '["alice@test"]'})
    for realm in ("test", "second"):
        token = {"Authorization": f"Bearer {provider.token('alice', realm)}"}
        assert hub.anonymous.get("/v1/clusters", headers=token).status_code == 200
        assert hub.anonymous.post("/v1/cluster-tokens", headers=token, json={}).status_code == 403
        spoken = {"Authorization": f"Bearer {provider.tokens_by_browser('alice', realm)['id_token']}"}
        assert hub.anonymous.get("/v1/clusters", headers=spoken).status_code == 401
    hub.stop()
    hub.settings = {**hub.settings, "oidc.issuers": trusting(provider, "second")}
    with pytest.raises(AssertionError, match="plain subjects"):
        hub.start()
    hub.kill()
    hub.settings = {**hub.settings, "oidc.issuers": trusting(provider, "second", "test")}
    hub.start()
