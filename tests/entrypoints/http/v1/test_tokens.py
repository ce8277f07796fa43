"""The door of credentials: who may ask, what is told, and never the refresh token."""

from collections.abc import AsyncIterator

import httpx
import pytest

from hansa.entrypoints.http.v1 import tokens
from real.identity_provider import IdentityProvider
from services.credentials.clusters import GROUP_KEY, OWNER, TOKEN, Cluster, application, cluster, issuer_settings
from services.credentials.conftest import provider, sqlite
from services.credentials.test_keyring import refresh_token

__all__ = ["provider", "sqlite"]  # fixtures

AS_OWNER = {"x-test-user": OWNER}
BASE = "/v1/services/hello"


@pytest.fixture
async def here(provider: IdentityProvider, sqlite: str) -> AsyncIterator[Cluster]:
    async with cluster(sqlite, issuer_settings(provider.issuer())) as made:
        await made.sign_in(provider.issuer())
        await made.with_token("hello", refresh_token(provider))
        yield made


@pytest.fixture
async def client(here: Cluster) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(application(here))
    async with httpx.AsyncClient(transport=transport, base_url="http://manager") as made:
        yield made


async def test_a_member_gets_a_token(client: httpx.AsyncClient) -> None:
    answer = await client.post(f"{BASE}/access-token", headers={"authorization": f"GroupKey {GROUP_KEY}"})
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    told = answer.json()
    assert told["access_token"].count(".") == 2
    assert 200 < told["expires_in"] <= 300
    assert told["expires_at"].endswith("Z")


@pytest.mark.parametrize(
    "header", ["", "GroupKey", "GroupKey ", f"Bearer {GROUP_KEY}", f"GroupKey {'cd' * 32}", f"GroupKey {'a' * 5000}"]
)
@pytest.mark.parametrize("name", ["hello", "missing"])
async def test_nobody_else_does(client: httpx.AsyncClient, header: str, name: str) -> None:
    answer = await client.post(f"/v1/services/{name}/access-token", headers={"authorization": header})
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["hint"]
    assert GROUP_KEY not in answer.text


async def test_the_owner_sees_how_it_stands(client: httpx.AsyncClient, here: Cluster) -> None:
    told = (await client.get(f"{BASE}/credentials", headers=AS_OWNER)).json()
    assert (told["service"], told["state"], told["source"], told["rotates"]) == ("hello", "ok", "own", None)
    given = here.records.secrets("hello")[TOKEN]
    rotated = await client.post(f"{BASE}/credentials/rotate", headers=AS_OWNER)
    assert rotated.status_code == 200
    assert rotated.json()["rotates"] is True
    gone = await client.delete(f"{BASE}/credentials", headers=AS_OWNER)
    assert gone.json()["state"] == "none"
    again = await client.delete(f"{BASE}/credentials", headers=AS_OWNER)
    assert (again.status_code, again.json()["type"]) == (409, "/problems/credentials.none")
    trail = (await client.get(f"{BASE}/audit", headers=AS_OWNER)).json()["entries"]
    assert [one["action"] for one in trail] == ["token.revoked", "token.rotated"]
    assert {one["actor"] for one in trail} == {OWNER}
    assert (await client.get(f"{BASE}/audit", params={"most": 1})).json()["entries"] == trail[:1]
    assert given not in f"{told} {rotated.text} {gone.text} {trail}"


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/credentials"), ("POST", "/credentials/rotate"), ("DELETE", "/credentials"), ("GET", "/audit")],
)
async def test_only_the_owner_and_the_admin(client: httpx.AsyncClient, here: Cluster, method: str, path: str) -> None:
    answer = await client.request(method, BASE + path, headers={"x-test-user": "mallory@test"})
    assert answer.status_code == 403
    assert answer.headers["content-type"] == "application/problem+json"
    assert (await client.request(method, f"/v1/services/missing{path}")).status_code == 404
    assert (await client.request(method, f"/v1/services/NO!{path}")).status_code == 400
    assert TOKEN in here.records.secrets("hello")
    assert (await client.request(method, BASE + path)).status_code == 200  # the admin


async def test_a_bad_number(client: httpx.AsyncClient) -> None:
    for most in ("0", "1001", "x"):
        assert (await client.get(f"{BASE}/audit", params={"most": most})).status_code == 400


async def test_another_service_of_that_name_has_a_trail_of_its_own(client: httpx.AsyncClient, here: Cluster) -> None:
    await client.post(f"{BASE}/credentials/rotate")
    await here.records.remove("hello")
    here.clock.ahead += 1
    await here.with_token("hello", "", owner="bob@test")
    assert (await client.get(f"{BASE}/audit", headers={"x-test-user": "bob@test"})).json()["entries"] == []


def test_every_answer_is_described(here: Cluster) -> None:
    paths = application(here).openapi()["paths"]
    prefix = tokens.router.prefix
    found = {(path.removeprefix(prefix), verb) for path, verbs in paths.items() for verb in verbs}
    assert found == {
        ("/access-token", "post"),
        ("/credentials", "get"),
        ("/credentials", "delete"),
        ("/credentials/rotate", "post"),
        ("/audit", "get"),
    }
    for verbs in paths.values():
        for operation in verbs.values():
            assert operation["description"]
            good = operation["responses"]["200"]["content"]["application/json"]["schema"]
            assert good["properties"]
            assert "application/problem+json" in operation["responses"]["401"]["content"]
