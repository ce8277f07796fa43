"""Who gets in: the admin, users of a trusted issuer in one of its groups, and holders of a service token."""

import base64
import json

import httpx
import pytest

from journeys.conftest import MakeService, Person
from real.identity_provider import IdentityProvider
from real.manager import Manager, StartManager

CHALLENGE = 'Basic realm="Authorization Required"'


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Basic",
        "Basic !!!",
        "Basic " + base64.b64encode(b"no colon").decode(),
        "Basic " + base64.b64encode(b"admin:wrong").decode(),
        "Basic " + base64.b64encode(b"other:password").decode(),
        "Bearer",
        "Bearer garbage",
        "Bearer a.b.c",
        "Bearer None",
        "Bearer " + "0" * 64,
        "Bearer " + "x" * 20_000,
        "Digest something",
    ],
)
def test_who_shows_nothing_good_gets_401(nobody: httpx.Client, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    answer = nobody.get("/system/services", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == CHALLENGE
    shown = (header or "").partition(" ")[2]
    assert not shown or shown[-20:] not in answer.text


def test_the_scheme_may_be_written_in_any_case(manager: Manager, sign_in_provider: IdentityProvider) -> None:
    token = sign_in_provider.token("alice")
    for scheme in ("bearer", "BEARER", "Bearer"):
        answer = manager.anonymous.get("/system/info", headers={"Authorization": f"{scheme} {token}"})
        assert answer.status_code == 200


def test_only_members_of_the_clusters_groups_get_in(manager: Manager, sign_in_provider: IdentityProvider) -> None:
    refused = manager.anonymous.get("/system/info", headers=bearer(sign_in_provider.token("carol")))
    assert refused.status_code == 401
    assert "group" in refused.text
    for path in ("/job/x", "/run/x"):
        assert manager.anonymous.post(path, headers=bearer(sign_in_provider.token("carol"))).status_code == 401


def test_another_realms_tokens_are_refused(manager: Manager, sign_in_provider: IdentityProvider) -> None:
    token = sign_in_provider.token("alice", realm="stranger")
    for method, path in (("GET", "/system/info"), ("POST", "/job/x"), ("POST", "/run/x")):
        assert manager.anonymous.request(method, path, headers=bearer(token)).status_code == 401


def test_a_token_with_another_payload_is_refused(manager: Manager, sign_in_provider: IdentityProvider) -> None:
    head, payload, signature = sign_in_provider.token("bob").split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    claims["sub"] = "alice@test"
    forged = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    for token in (f"{head}.{forged}.{signature}", f"{head}.{forged}.", f"{head}.{payload}.AAAA"):
        answer = manager.anonymous.get("/system/services", headers=bearer(token))
        assert answer.status_code == 401
        assert "alice@test" not in answer.text
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    assert manager.anonymous.get("/system/info", headers=bearer(f"{unsigned}.{forged}.")).status_code == 401


def test_basic_is_the_admin_and_starts_nothing(make_service: MakeService, admin: httpx.Client) -> None:
    name = make_service(admin)
    for path in (f"/job/{name}", f"/run/{name}"):
        assert admin.post(path).status_code == 401


def test_some_users_have_the_admins_view_and_nothing_more(
    person: Person, make_service: MakeService, alice: httpx.Client
) -> None:
    watcher = person("watcher")
    assert watcher.get("/system/logs").status_code == 200
    assert alice.get("/system/logs").status_code == 403
    assert set(watcher.get("/system/status").json()["oscar"]["pods"]["states"])
    name = make_service(alice)
    assert watcher.get(f"/system/services/{name}").status_code == 403
    assert watcher.delete(f"/system/services/{name}").status_code == 403
    assert watcher.put("/system/config", json={"allowed_image_repositories": ["x"]}).status_code == 403


def test_namespaces_never_mix_users(alice: httpx.Client, bob: httpx.Client, make_service: MakeService) -> None:
    spaces = {client.get(f"/system/services/{make_service(client)}").json()["namespace"] for client in (alice, bob)}
    assert spaces == {"oscar-svc-alice-te", "oscar-svc-bob-test"}


def test_a_manager_without_settings_lets_the_admin_in_with_a_kept_password(
    start_manager: StartManager, sign_in_provider: IdentityProvider
) -> None:
    own = start_manager({"admin.password": ""})
    kept = (own.data / "admin-password").read_text()
    assert (own.data / "admin-password").stat().st_mode & 0o077 == 0
    auth = httpx.BasicAuth("admin", kept)
    nobody = own.anonymous
    assert nobody.get("/system/info", auth=auth).status_code == 200
    assert nobody.get("/system/info", auth=httpx.BasicAuth("admin", "")).status_code == 401
    assert own.bearer(sign_in_provider.token("alice")).get("/system/info").status_code == 401
    assert nobody.get("/system/config", auth=auth).json()["config"]["oidc_groups"] == [""]
    shown = nobody.get("/system/status", auth=auth).json()["oscar"]["oidc"]
    assert shown == {"enabled": False, "issuers": [], "groups": []}
    assert nobody.get("/system/services", auth=auth).text == "[]"
    assert nobody.get("/system/buckets", auth=auth).text == "null"
    own.kill()
    own.start()
    assert nobody.get("/system/info", auth=auth).status_code == 200
    assert kept not in own.log
