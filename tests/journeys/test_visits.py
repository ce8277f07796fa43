"""Who reaches an exposed service: by its visibility, by its token, by a visit that `/auth` handed out; how long."""

import httpx
import pytest
import websockets
from websockets.sync.client import connect

from journeys.conftest import signing_in
from journeys.exposing import Expose, at, definition, ready, script
from real.identity_provider import IdentityProvider
from real.manager import Manager, StartManager, trusting


def visit(client: httpx.Client, name: str, **how: str) -> str:
    """The cookie `/auth` hands out, as a browser sends it back."""
    answer = client.get(f"/system/services/{name}/auth", params=how)
    assert (answer.status_code, answer.content) == (200, b""), answer.text
    client.cookies.clear()
    return answer.headers["set-cookie"].partition(";")[0]


def comes_in(client: httpx.Client, name: str, cookie: str) -> int:
    return client.get(at(name, "/x"), headers={"Cookie": cookie}).status_code


def share(client: httpx.Client, name: str, **fields: object) -> None:
    changed = {**client.get(f"/system/services/{name}").json(), **fields}
    assert client.put("/system/services", json=changed).status_code == 204


def test_a_private_service_is_for_who_may_see_it(
    expose: Expose, alice: httpx.Client, bob: httpx.Client, admin: httpx.Client, manager: Manager
) -> None:
    name, nobody = expose(visibility="private"), manager.anonymous
    token = alice.get(f"/system/services/{name}").json()["token"]
    refused = nobody.get(at(name, "/x"))
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Basic")
    assert nobody.get(at(name, "/x"), params={"token": token}).status_code == 401  # that is for `forward`
    assert nobody.get(at(name, "/x"), headers={"Authorization": "Bearer x.y.z"}).status_code == 401
    assert nobody.get(at(name, "/x"), auth=(name, "0" * 64)).status_code == 401
    assert nobody.get(at(name, "/x"), auth=("admin", "wrong")).status_code == 401
    assert bob.get(at(name, "/x")).status_code == 403
    for client in (alice, admin, manager.bearer(token)):
        told = client.get(at(name, "/x"))
        assert told.status_code == 200
        assert "authorization" not in told.json()["headers"]
        assert "private" in told.headers["cache-control"]  # no cache in between shows it to others
        client.cookies.clear()
    assert nobody.get(at(name, "/x"), auth=(name, token)).status_code == 200
    nobody.cookies.clear()
    with pytest.raises(websockets.InvalidStatus), connect(f"ws://127.0.0.1:{manager.port}{at(name, '/ws')}"):
        pass
    with connect(f"ws://127.0.0.1:{manager.port}{at(name, '/ws')}", additional_headers={"Cookie": visit(alice, name)}):
        pass


def test_a_restricted_service_is_for_who_is_listed(
    expose: Expose, alice: httpx.Client, bob: httpx.Client, dora: httpx.Client, nobody: httpx.Client
) -> None:
    name = expose(visibility="restricted", allowed_users=["dora@test"])
    seen = {client: client.get(at(name, "/x")).status_code for client in (alice, dora, bob, nobody)}
    for client in seen:
        client.cookies.clear()
    assert list(seen.values()) == [200, 200, 403, 401]


def test_a_visit_is_short_and_for_one_service(expose: Expose, alice: httpx.Client, nobody: httpx.Client) -> None:
    name, other = expose(visibility="private"), expose(visibility="private")
    token = alice.get(f"/system/services/{name}").json()["token"]
    answer = alice.get(f"/system/services/{name}/auth", headers={"X-Forwarded-Proto": "https"})
    alice.cookies.clear()
    cookie = answer.headers["set-cookie"]
    parts = {part.strip() for part in cookie.split(";")}
    assert {"HttpOnly", "Max-Age=900", f"Path={at(name)}", "SameSite=lax", "Secure"} <= parts
    assert "no-store" in answer.headers["cache-control"]
    assert token not in cookie
    mine = cookie.partition(";")[0]
    assert comes_in(nobody, name, mine) == 200
    key, _, value = mine.partition("=")
    assert comes_in(nobody, name, f'{key}=forged; {key}="{value}"') == 200  # somebody else's cookie of that name
    assert comes_in(nobody, name, f"{key}={token}") == 401  # a token is no visit
    assert comes_in(nobody, name, f"{key}={value[:-1]}{'1' if value.endswith('0') else '0'}") == 401
    assert comes_in(nobody, name, f"{key}={value}x") == 401
    theirs = mine.replace(name.replace("-", "_"), other.replace("-", "_"))
    assert comes_in(nobody, other, theirs) == 401
    again = nobody.get(f"/system/services/{name}/auth", headers={"Cookie": mine})
    assert (again.status_code, "set-cookie" in again.headers) == (200, False)  # it does not prolong itself


def test_a_visit_ends_when_its_visitor_may_no_longer_in(
    expose: Expose, alice: httpx.Client, dora: httpx.Client, nobody: httpx.Client
) -> None:
    name = expose(visibility="restricted", allowed_users=["dora@test"])
    doras, alices = visit(dora, name), visit(alice, name)
    assert comes_in(nobody, name, doras) == 200
    share(alice, name, visibility="private", allowed_users=[])
    ready(alice, name)
    assert comes_in(nobody, name, doras) == 401
    assert comes_in(nobody, name, alices) == 200


def test_a_visit_ends_with_the_services_token(expose: Expose, alice: httpx.Client, nobody: httpx.Client) -> None:
    name = expose(visibility="private")
    old = alice.get(f"/system/services/{name}").json()["token"]
    by_token = visit(nobody, name, token=old)
    by_owner = visit(alice, name)
    assert [comes_in(nobody, name, cookie) for cookie in (by_token, by_owner)] == [200, 200]
    assert alice.delete(f"/system/services/{name}").status_code == 204
    assert expose(visibility="private", name=name) == name  # the same name, another service
    assert [comes_in(nobody, name, cookie) for cookie in (by_token, by_owner)] == [401, 401]


def test_set_auth_asks_for_credentials_of_a_public_service_too(
    expose: Expose, alice: httpx.Client, bob: httpx.Client, nobody: httpx.Client
) -> None:
    name = expose(visibility="public", expose={"set_auth": True, "auth_type": "forward"})
    token = alice.get(f"/system/services/{name}").json()["token"]
    assert nobody.get(at(name, "/x")).status_code == 401
    assert comes_in(nobody, name, visit(bob, name)) == 200  # everybody who signs in may see it
    told = nobody.get(at(name, f"/x?a=1&token={token}&b=2")).json()
    nobody.cookies.clear()
    assert told["path"] == at(name, "/x?a=1&b=2")
    assert token not in str(told["all_headers"])


def test_another_sites_form_cannot_use_a_visit(expose: Expose, alice: httpx.Client, manager: Manager) -> None:
    name, nobody = expose(visibility="private"), manager.anonymous
    cookie = visit(alice, name)
    for foreign in ({"Origin": "https://evil.example.org"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
        refused = nobody.post(at(name, "/x"), headers={"Cookie": cookie, **foreign})
        assert refused.status_code == 403, foreign
    own = {"Cookie": cookie, "Origin": manager.url, "Sec-Fetch-Site": "same-origin"}
    assert nobody.post(at(name, "/x"), headers=own).status_code == 200
    nobody.cookies.clear()


def test_who_trusts_every_visitor_can_say_so(start_manager: StartManager, sign_in_provider: IdentityProvider) -> None:
    own = start_manager({**trusting(sign_in_provider), "exposed.access": "open", "exposed.sandbox": False})
    alice = signing_in(own, sign_in_provider)("alice")
    for name, asks in (("plain", False), ("asking", True)):
        fields = definition(visibility="private", expose={"set_auth": asks})
        body = {"name": name, "image": "debian", "script": script(8080), **fields}
        assert alice.post("/system/services", json=body).status_code == 201
        ready(alice, name)
    answer = own.anonymous.get(at("plain", "/x"))
    assert answer.status_code == 200
    assert "content-security-policy" not in answer.headers
    assert own.anonymous.get(at("asking", "/x")).status_code == 401
