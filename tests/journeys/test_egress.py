"""A tenant tries to borrow the manager's network: nothing a definition or an event names leads to what is not public.

Every test ends with a listener of this machine that was never called.
"""

import base64
import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from journeys.attacks.whose_manager import WHOSE_MANAGER, as_user
from journeys.conftest import FreshName, MakeService
from journeys.events import minio_event
from journeys.waiting import run_job
from real.identity_provider import IdentityProvider
from real.listener import Listener, listener
from real.manager import Manager, StartManager, running_manager, trusting

KEYS = {"access_key": "AK", "secret_key": "SK", "region": "us-east-1"}


@pytest.fixture
def web() -> Iterator[Listener]:
    with listener() as heard:
        yield heard
        assert heard.visits == []


def spellings(port: int) -> list[str]:
    hosts = ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "0177.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]",
             "[64:ff9b::7f00:1]", "0.0.0.0", "LocalHost", "a.localhost"]  # fmt: skip
    return [f"http://{host}:{port}" for host in hosts]


def storing(name: str, kind: str, settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "image": "debian",
        "memory": "64Mi",
        "script": "echo secret > $TMP_OUTPUT_DIR/x",
        "output": [{"storage_provider": f"{kind}.evil", "path": "bucket/out"}],
        "storage_providers": {kind: {"evil": settings}},
    }


def provider(kind: str, url: str) -> dict[str, Any]:
    return {"hostname": url, "login": "", "password": ""} if kind == "webdav" else {"endpoint": url, **KEYS}


@pytest.mark.parametrize("kind", ["minio", "s3", "webdav"])
def test_a_store_at_this_machine_or_its_network_cannot_be_named(
    alice: httpx.Client, fresh_name: FreshName, make_service: MakeService, web: Listener, kind: str
) -> None:
    port = int(web.url.rpartition(":")[2])
    name = fresh_name("lure")
    good = make_service(alice, "true")
    own_store = alice.get("/system/config").json()["minio_provider"]["endpoint"]
    inside = [own_store] if kind == "webdav" else []
    inside += ["http://169.254.169.254", "http://10.0.0.1", "http://192.168.0.1", "http://[fd00:ec2::254]"]
    for url in [*spellings(port), *inside, f"http://{socket.gethostname()}:{port}"]:
        answer = alice.post("/system/services", json=storing(name, kind, provider(kind, url)))
        assert answer.status_code == 400, (url, answer.text)
        assert f"storage_providers.{kind}.evil" in answer.text
        changed = {**alice.get(f"/system/services/{good}").json(), **storing(good, kind, provider(kind, url))}
        assert alice.put("/system/services", json=changed).status_code == 400, url
    assert alice.get(f"/system/services/{name}").status_code == 404


def test_who_claims_to_be_a_replica_of_this_very_cluster_names_nothing_of_it(
    alice: httpx.Client, admin: httpx.Client, fresh_name: FreshName, web: Listener
) -> None:
    own = admin.get("/system/info").json().get("cluster_id") or "hansa"
    for origin in (own, "hansa", "visby"):
        definition = {
            **storing(fresh_name("lure"), "minio", {"endpoint": web.url, **KEYS}),
            "output": [{"storage_provider": "minio.default", "path": "bucket/out"}],
            "annotations": {"oscar.grycap/origin-cluster": origin, "oscar.grycap/origin-service": "x"},
            "storage_providers": {"minio": {"default": {"endpoint": web.url, **KEYS}}},
        }
        answer = alice.post("/system/services", json=definition)
        assert answer.status_code in (400, 403), answer.text
        definition["storage_providers"] = {"minio": {origin: {"endpoint": web.url, **KEYS}}}
        assert alice.post("/system/services", json=definition).status_code in (400, 403)


def test_the_embedded_store_s_inner_port_cannot_be_named_even_if_the_operator_allowed_loopback(
    start_manager: StartManager, sign_in_provider: IdentityProvider
) -> None:
    """A query behind a WebDAV hostname once deleted another tenant's bucket there."""
    own = start_manager({**trusting(sign_in_provider), "egress.allow": ["127.0.0.0/8"]})
    alice = own.bearer(sign_in_provider.token("alice"))
    ports = json.loads((own.data / "objects" / "ports.json").read_text())
    for port in (ports["filer"], ports["filer"] + 10_000, ports["master"], ports["volume"]):
        for url in (f"http://127.0.0.1:{port}", f"http://127.1:{port}/buckets/x?op=delete", f"127.0.0.1:{port}"):
            answer = alice.post("/system/services", json=storing("lure", "webdav", provider("webdav", url)))
            assert answer.status_code == 400, (url, answer.text)


def test_every_dial_is_judged_and_not_only_the_definition(
    start_manager: StartManager, sign_in_provider: IdentityProvider
) -> None:
    """As with a name that leads elsewhere by now: what was good when the service came is not when its job runs."""
    with listener() as store:
        allowed = {**trusting(sign_in_provider), "egress.allow": [store.url.removeprefix("http://")]}
        own = start_manager(allowed)
        alice = own.bearer(sign_in_provider.token("alice"))
        definition = storing("dav", "webdav", provider("webdav", store.url))
        assert alice.post("/system/services", json=definition).status_code == 201
        run_job(alice, "dav")
        assert [one.method for one in store.visits][-1] == "PUT"
        calls = len(store.visits)
        own.settings = {**own.settings, "egress.allow": []}
        own.restart()
        log = run_job(alice, "dav")
        assert "does not call 127.0.0.1" in log, log
        assert len(store.visits) == calls


@pytest.mark.parametrize("whose", WHOSE_MANAGER)
def test_a_store_that_may_be_called_leads_nobody_elsewhere(sign_in_provider: IdentityProvider, whose: str) -> None:
    """A redirect is an answer, and no order."""
    with listener() as trap, listener(redirect_to=trap.url) as store:
        allowed = {**trusting(sign_in_provider), "egress.allow": [store.url.removeprefix("http://")]}
        with running_manager(allowed, user=as_user(whose)) as own:
            alice = own.bearer(sign_in_provider.token("alice"))
            for kind in ("webdav", "s3", "minio"):
                carrying = storing(f"carrying-{kind}", kind, provider(kind, store.url))
                bringing = {**carrying, "name": f"bringing-{kind}", "output": [], "mount": carrying["output"][0]}
                for definition in (carrying, bringing) if kind != "webdav" else (carrying,):  # it is not read from
                    made = alice.post("/system/services", json=definition)
                    assert made.status_code == 201, made.text
                    before = len(store.visits)
                    run_job(alice, definition["name"])
                    assert len(store.visits) > before
        assert trap.visits == []


@pytest.mark.parametrize(
    "url",
    ["https://dav.example.org/a?x=1", "https://dav.example.org#f", "https://u:p@dav.example.org", "dav.example.org?",
     "ftp://dav.example.org", "https://dav.example.org:0"],
)  # fmt: skip
def test_a_webdav_hostname_is_a_host_and_no_more(alice: httpx.Client, fresh_name: FreshName, url: str) -> None:
    answer = alice.post("/system/services", json=storing(fresh_name("lure"), "webdav", provider("webdav", url)))
    assert answer.status_code == 400, answer.text
    assert "u:p" not in answer.text


def test_a_region_is_no_host(alice: httpx.Client, fresh_name: FreshName) -> None:
    for region in ("x.evil.example/", "127.0.0.1:80/", "a@b"):
        answer = alice.post("/system/services", json=storing(fresh_name("lure"), "s3", {**KEYS, "region": region}))
        assert answer.status_code == 400, answer.text


def test_members_cannot_bring_a_forbidden_store(alice: httpx.Client, make_service: MakeService, web: Listener) -> None:
    """`/system/federation` takes storage providers too."""
    name = make_service(alice, "true")
    for ident in ("default", "evil"):
        body = {
            "members": [{"type": "endpoint", "url": f"{web.url}/x"}],
            "storage_providers": {"MinIO": {ident: {"endpoint": web.url, "access_key": "a", "secret_key": "b"}}},
        }
        for method in ("POST", "PUT"):
            answer = alice.request(method, f"/system/federation/{name}", json=body)
            assert answer.status_code == 400, answer.text
    assert "evil" not in alice.get(f"/system/services/{name}").json()["storage_providers"].get("minio", {})


def test_an_event_cannot_name_a_foreign_store(
    alice: httpx.Client, bob: httpx.Client, make_service: MakeService, fresh_name: FreshName
) -> None:
    """Not the service's outputs, and no other tenant's bucket by way of them: at every door, for every caller."""
    name = make_service(
        alice,
        "cat $INPUT_FILE_PATH",
        visibility="public",
        input=[{"storage_provider": "minio.default", "path": f"{fresh_name('b')}/in"}],
        output=[{"storage_provider": "minio.far", "path": "bucket/out"}],
        storage_providers={"minio": {"far": {"endpoint": "https://far.example.org", **KEYS}}},
    )
    service_token = alice.get(f"/system/services/{name}").json()["token"]
    inner = json.dumps(minio_event("secret", "in/x"))
    for given in ("minio.far", "far", "elsewhere", "s3.far", "minio.visby"):
        body = json.dumps({"storage_provider": given, "event": inner}).encode()
        for client in (alice, bob):
            for door in ("job", "run"):
                answer = client.post(f"/{door}/{name}", content=body)
                assert answer.status_code == 400, (given, door, answer.text)
                assert "no input" in answer.text
        as_service = httpx.post(
            f"{alice.base_url}/job/{name}".replace("//job", "/job"),
            content=body,
            headers={"Authorization": f"Bearer {service_token}"},
            trust_env=False,
        )
        assert as_service.status_code == 400, as_service.text


def test_a_token_s_issuer_is_never_called_unless_it_is_configured(manager: Manager, web: Listener) -> None:
    """`iss`, `jku` and `x5u` are the sender's own words."""

    def part(document: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")

    head = {"alg": "RS256", "kid": "x", "jku": f"{web.url}/jku", "x5u": f"{web.url}/x5u", "typ": "JWT"}
    claims = {"iss": web.url, "sub": "mallory", "exp": 4_000_000_000, "azp": "x", "aud": web.url}
    token = f"{part(head)}.{part(claims)}.c2ln"
    for path in ("/system/services", "/system/config"):
        answer = httpx.get(f"{manager.url}{path}", headers={"Authorization": f"Bearer {token}"}, trust_env=False)
        assert answer.status_code == 401
    assert web.visits == []


def test_a_refresh_token_s_issuer_is_never_called_unless_it_is_configured(
    alice: httpx.Client, make_service: MakeService, web: Listener
) -> None:
    claims = {"iss": web.url, "sub": "alice", "azp": "client", "typ": "Offline", "exp": 4_000_000_000}
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    token = f"{base64.urlsafe_b64encode(b'{}').decode()}.{body}.c2ln"
    name = make_service(alice, "true", environment={"secrets": {"refresh_token": token}})
    alice.post(f"/job/{name}", content=b"")
    alice.post(f"/run/{name}", content=b"")
    alice.get(f"/system/services/{name}")
    assert web.visits == []
