"""Where do secrets go? Into the script that asked for them, and nowhere else: no answer, log, error or file."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import httpx

from journeys.conftest import FreshName, MakeService
from journeys.objects import make_bucket, store_of
from journeys.waiting import run_job
from real.identity_provider import IdentityProvider
from real.manager import Manager, StartManager, trusting

KEY = "kept-by-the-vault-3141"
PASSWORD = "of-another-cluster-2718"
STORE_KEY = "of-a-foreign-store-1618"
REFRESH = "a-refresh-token-1414"
HEADER = "in-a-members-header-1732"
STORES_OWN = re.compile(r"objects/data/(\w+\.dat|filerldb2/\w+/[\w.]+)")  # where the embedded store keeps its users


def secretive(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "image": "debian",
        "memory": "64Mi",
        "script": "env; cat /oscar/config/*",
        "environment": {"variables": {"OPEN": "seen"}, "secrets": {"KEY": KEY, "refresh_token": REFRESH}},
        "clusters": {"visby": {"endpoint": "http://127.0.0.1:9", "auth_user": "u", "auth_password": PASSWORD}},
        "storage_providers": {"s3": {"far": {"access_key": "AK", "secret_key": STORE_KEY, "region": "eu"}}},
    }


def read_everything(client: httpx.Client, name: str) -> str:
    """Every answer that speaks of the service, put together."""
    paths = [
        "/system/services",
        "/system/services?include=deployment",
        f"/system/services/{name}",
        f"/system/services/{name}/deployment",
        f"/system/services/{name}/deployment/logs",
        f"/system/federation/{name}",
        f"/system/logs/{name}",
        f"/system/metrics/{name}",
        "/system/metrics",
        "/system/status",
        "/metrics",
        "/v1/node",
        "/openapi.json",
    ]
    return "\n".join(client.get(path).text for path in paths)


def files_with(folder: Path, secret: str) -> set[str]:
    """Those in which it can be read."""
    found = (path for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes())
    return {path.relative_to(folder).as_posix() for path in found}


def test_a_script_gets_what_its_owner_gave_it_and_no_more(
    alice: httpx.Client, make_service: MakeService, fresh_name: FreshName
) -> None:
    definition = secretive(fresh_name("secretive"))
    script = definition.pop("script")
    name = make_service(alice, script, **definition)
    for text in (run_job(alice, name), alice.post(f"/run/{name}").text):
        assert f"KEY={KEY}" in text
        assert "OPEN=seen" in text
        for secret in (REFRESH, PASSWORD, STORE_KEY):
            assert secret not in text


def test_no_answer_shows_a_secret(
    alice: httpx.Client, bob: httpx.Client, admin: httpx.Client, make_service: MakeService, fresh_name: FreshName
) -> None:
    definition = secretive(fresh_name("secretive"))
    script = definition.pop("script")
    name = make_service(alice, script, visibility="public", **definition)
    for client in (alice, admin, bob):
        text = read_everything(client, name)
        assert '"KEY":""' in text  # that there is one may be known
        for secret in (KEY, PASSWORD, REFRESH):
            assert secret not in text
    # the keys of a foreign store come back to whoever gave them, as oscar-python's storage client needs it
    assert STORE_KEY in read_everything(alice, name)
    assert STORE_KEY not in read_everything(bob, name)


def test_errors_do_not_repeat_secrets(alice: httpx.Client, fresh_name: FreshName) -> None:
    good = secretive(fresh_name("wrong"))
    wrong = [
        {**good, "cpu": "lots"},
        {**good, "environment": {"secrets": {"KEY": [KEY]}}},
        {**good, "environment": {"secrets": {"bad name": KEY}}},
        {**good, "clusters": {"visby": {"auth_password": {"is": PASSWORD}}}},
        {**good, "storage_providers": {"s3": {"far": STORE_KEY}}},
        {**good, "input": [{"storage_provider": "s3.far", "path": "b/in"}]},
        {**good, "output": [{"storage_provider": "s3.near", "path": "b/in"}]},
    ]
    for definition in wrong:
        for method in ("POST", "PUT"):
            answer = alice.request(method, "/system/services", json=definition)
            assert 400 <= answer.status_code < 500
            for secret in (KEY, PASSWORD, STORE_KEY):
                assert secret not in answer.text
    broken = json.dumps(good)[:-5].encode()
    assert KEY not in alice.post("/system/services", content=broken).text


def test_neither_the_log_nor_the_disk_holds_a_secret(
    start_manager: StartManager, sign_in_provider: IdentityProvider
) -> None:
    """At rest everything secret is sealed, also what a killed manager left lying about."""
    own = start_manager({**trusting(sign_in_provider), "log.level": "debug", "admin.password": ""})
    admin_password = (own.data / "admin-password").read_text()
    root = json.loads((own.data / "objects" / "keys.json").read_text())
    token = sign_in_provider.token("alice")
    client = own.bearer(token)
    quiet = {**secretive("sealed"), "script": "true"}
    assert client.post("/system/services", json=quiet).status_code == 201
    run_job(client, "sealed", b"input")
    assert client.post("/run/sealed", content=b"input").status_code == 200
    store_secret = client.get("/system/config").json()["minio_provider"]["secret_key"]
    service_token = client.get("/system/services/sealed").json()["token"]
    own.anonymous.get("/system/info", headers={"Authorization": "Basic " + base64.b64encode(b"admin:guess").decode()})
    own.anonymous.get("/system/services/sealed/auth", params={"token": "7" * 64})
    assert client.post("/system/services", json={**quiet, "cpu": "x"}).status_code == 400
    own.kill()
    # a signed token's last part is what makes it usable
    sealed = (KEY, PASSWORD, STORE_KEY, REFRESH, service_token, token.rpartition(".")[2])
    for secret in (*sealed, admin_password, store_secret, root["root_secret_key"]):
        assert secret not in own.log
    for secret in sealed:
        assert not files_with(own.data, secret)
    assert (own.data / "vault.key").stat().st_mode & 0o077 == 0
    # these the store and the manager read themselves: the data folder is as secret as they are
    assert files_with(own.data, admin_password) == {"admin-password"}
    assert files_with(own.data, root["root_secret_key"]) == {"objects/keys.json"}
    held = files_with(own.data, store_secret)
    assert held
    assert all(STORES_OWN.fullmatch(path) for path in held), held


def test_the_shared_managers_log_names_no_token(
    alice: httpx.Client, manager: Manager, make_service: MakeService
) -> None:
    name = make_service(alice, "true", visibility="public")
    token = alice.get(f"/system/services/{name}").json()["token"]
    manager.anonymous.get(f"/system/services/{name}/auth", params={"token": token})
    manager.anonymous.get(f"/system/services/{name}/exposed/x", params={"token": token})
    manager.bearer(token).post(f"/job/{name}")
    assert token not in manager.log
    assert manager.password not in manager.log
    assert manager.admin.get("/system/logs").status_code == 200
    assert token not in manager.admin.get("/system/logs").text


def test_root_keys_of_the_store_open_every_bucket_and_no_door_of_the_manager(
    manager: Manager, alice: httpx.Client, fresh_name: FreshName
) -> None:
    """They lie in the data folder, so whoever has it has these."""
    bucket = fresh_name("hers")
    make_bucket(alice, bucket, "x", b"hers")
    root = json.loads((manager.data / "objects" / "keys.json").read_text())
    key, secret = root["root_access_key"], root["root_secret_key"]
    assert manager.admin.get("/system/config").json()["minio_provider"]["secret_key"] == secret
    thief = store_of(manager.admin)
    assert thief.get_object(Bucket=bucket, Key="x")["Body"].read() == b"hers"
    thief.put_object(Bucket=bucket, Key="x", Body=b"changed")
    assert manager.bearer(secret).get("/system/config").status_code == 401
    basic = base64.b64encode(f"{key}:{secret}".encode()).decode()
    assert manager.anonymous.get("/system/config", headers={"Authorization": f"Basic {basic}"}).status_code == 401
    assert alice.delete(f"/system/buckets/{bucket}").is_success
