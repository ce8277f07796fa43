"""Are wrong passwords throttled at a manager and a hub, without locking the admin out?"""

from collections.abc import Iterator

import httpx
import pytest

from real.hub import StartHub
from real.manager import Manager, running_manager

PER_MINUTE = 5


@pytest.fixture(scope="module")
def own() -> Iterator[Manager]:
    with running_manager({"http.wrong_passwords": PER_MINUTE, "http.metrics_token": "for-prometheus"}) as running:
        yield running


def guesses(url: str, path: str, address: str, times: int) -> list[int]:
    """From an address of this machine's own network of loopback addresses."""
    door = httpx.HTTPTransport(local_address=address)
    with httpx.Client(base_url=url, transport=door, auth=("admin", "wrong"), timeout=30) as client:
        return [client.get(path).status_code for _ in range(times)]


def ask(url: str, path: str, address: str, password: str, **headers: str) -> httpx.Response:
    door = httpx.HTTPTransport(local_address=address)
    with httpx.Client(base_url=url, transport=door, auth=("admin", password), timeout=30) as client:
        return client.get(path, headers=headers)


def test_one_address_is_told_to_wait_and_others_are_not(own: Manager) -> None:
    assert guesses(own.url, "/system/info", "127.0.0.2", PER_MINUTE + 2) == [401] * PER_MINUTE + [429] * 2
    refused = ask(own.url, "/system/info", "127.0.0.2", own.password)
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert "wait" in refused.text
    assert ask(own.url, "/system/info", "127.0.0.3", own.password).status_code == 200


def test_the_last_word_of_a_proxy_tells_the_client(own: Manager) -> None:
    """127.0.0.1 counts as a proxy; what a client wrote before it is not believed."""
    with httpx.Client(base_url=own.url, auth=("admin", "wrong"), timeout=30, trust_env=False) as client:
        for number in range(PER_MINUTE):
            said = {"X-Forwarded-For": f"192.0.2.{number}, 198.51.100.7"}
            assert client.get("/system/info", headers=said).status_code == 401
        assert client.get("/system/info", headers={"X-Forwarded-For": "1.2.3.4, 198.51.100.7"}).status_code == 429
    said = {"X-Forwarded-For": "198.51.100.8"}
    assert ask(own.url, "/system/info", "127.0.0.1", own.password, **said).status_code == 200
    # an address that is no proxy speaks for itself, whatever it says
    assert ask(own.url, "/system/info", "127.0.0.3", own.password, **{"X-Forwarded-For": "198.51.100.7"}).is_success


def test_exposed_services_are_no_way_around_it(own: Manager) -> None:
    body = {"name": "quiet", "image": "debian", "script": "sleep 1000", "expose": {"api_port": [8080], "min_scale": 1}}
    assert own.admin.post("/system/services", json=body).status_code == 201
    found = guesses(own.url, "/system/services/quiet/exposed/", "127.0.0.4", PER_MINUTE + 1)
    assert found == [401] * PER_MINUTE + [429]
    assert guesses(own.url, "/system/services/quiet/auth", "127.0.0.4", 1) == [429]


def test_prometheus_has_a_token_of_its_own(own: Manager) -> None:
    assert own.anonymous.get("/metrics").status_code == 401
    assert own.bearer("for-prometheus").get("/metrics").text.startswith("# HELP")
    assert own.bearer("for-prometheuz").get("/metrics").status_code == 401
    assert own.bearer("for-prometheus").get("/system/info").status_code == 401
    assert own.admin.get("/metrics").status_code == 200


def test_the_hub_does_the_same(start_hub: StartHub) -> None:
    hub = start_hub({"http.wrong_passwords": PER_MINUTE})
    found = guesses(hub.url, "/v1/clusters", "127.0.0.5", PER_MINUTE + 1)
    assert found == [401] * PER_MINUTE + [429]
    assert ask(hub.url, "/v1/clusters", "127.0.0.6", hub.password).status_code == 200
    assert hub.anonymous.get("/metrics").status_code == 401
    assert hub.admin.get("/metrics").status_code == 200
    foreign = {"Origin": "https://evil.example.org", "Content-Type": "text/plain"}
    for path in ("/v1/cluster-tokens", "/v1/clusters/lubeck/cordon", "/v1/clusters/lubeck/drain"):
        refused = hub.admin.post(path, content="{}", headers=foreign)
        assert (refused.status_code, refused.json()["type"]) == (403, "/problems/request.cross-site")
    assert "<script" not in hub.anonymous.get("/docs").text
