"""Another origin for tenants' pages: at its host or port nothing but pages answers, and only there they are free."""

import contextlib
import socket
from collections.abc import Iterator

import httpx
import pytest
import websockets
from websockets.sync.client import connect

from journeys.conftest import signing_in
from journeys.exposing import at, definition, ready, script
from real.identity_provider import IdentityProvider
from real.manager import Manager, free_port, running_manager, trusting

HOST = "{service}.pages.example.org"


@pytest.fixture(scope="module")
def pages_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def own(sign_in_provider: IdentityProvider, pages_port: int) -> Iterator[Manager]:
    asked = {"exposed.url": f"https://{HOST}", "exposed.port": pages_port}
    with running_manager({**trusting(sign_in_provider), **asked}) as running:
        alice = signing_in(running, sign_in_provider)("alice")
        for name in ("page", "other"):
            body = {"name": name, "image": "debian", "script": script(8080), **definition()}
            assert alice.post("/system/services", json=body).status_code == 201
        for name in ("page", "other"):
            ready(alice, name)
        yield running


def asked(manager: Manager, path: str, host: str, **headers: str) -> httpx.Response:
    return httpx.get(manager.url + path, headers={"Host": host, **headers}, timeout=30, trust_env=False)


def test_at_its_own_host_a_page_is_free_and_alone(own: Manager) -> None:
    home = HOST.format(service="page")
    answer = asked(own, at("page", "/x"), home)
    assert answer.status_code == 200
    assert "content-security-policy" not in answer.headers
    assert answer.headers["x-content-type-options"] == "nosniff"
    for path in ("/", "/health", "/docs", "/openapi.json", "/system/services", "/system/services/page", "/v1/node",
                 at("other", "/x"), "/system/services/other/auth", "/system/services/page/exposed-not"):  # fmt: skip
        refused = asked(own, path, home)
        assert refused.status_code == 404, path
    assert asked(own, "/system/services/page/auth", home).status_code == 401


def test_web_sockets_at_its_own_host(own: Manager, pages_port: int) -> None:
    for name, host, allowed in (
        ("page", HOST.format(service="page"), True),
        ("page", HOST.format(service="other"), False),
        ("other", HOST.format(service="page"), False),
    ):
        for port in (own.port, pages_port):
            url = f"ws://{host}:443{at(name, '/ws')}"
            with contextlib.ExitStack() as talk:
                raw = talk.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
                if allowed:
                    line = talk.enter_context(connect(url, sock=raw, open_timeout=20))
                    line.send("hello")
                    assert line.recv(timeout=20) == "HELLO"
                else:
                    with pytest.raises(websockets.InvalidStatus):
                        connect(url, sock=raw, open_timeout=20)


def test_at_the_managers_origin_pages_stay_sandboxed_and_people_are_sent_home(own: Manager) -> None:
    answer = own.anonymous.get(at("page", "/x"))
    own.anonymous.cookies.clear()
    assert answer.status_code == 200  # programs are served as before
    assert answer.headers["content-security-policy"].startswith("sandbox ")
    sent = own.anonymous.get(at("page", "/x%2Fy?q=1"), headers={"Sec-Fetch-Mode": "navigate"})
    assert sent.status_code == 307
    assert sent.headers["location"] == f"https://{HOST.format(service='page')}{at('page', '/x%2Fy?q=1')}"
    at_home = asked(own, at("page", "/x"), HOST.format(service="page"), **{"Sec-Fetch-Mode": "navigate"})
    assert at_home.status_code == 200


def test_the_port_for_pages_answers_for_pages_only(own: Manager, pages_port: int) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{pages_port}", timeout=30, trust_env=False) as client:
        for path in ("/", "/health", "/metrics", "/system/services", "/system/services/page"):
            assert client.get(path, auth=("admin", own.password)).status_code == 404, path
        assert client.post("/system/services", json={}, auth=("admin", own.password)).status_code == 404
        shared = client.get(at("page", "/x"))
        assert shared.status_code == 200
        assert shared.headers["content-security-policy"].startswith("sandbox ")  # all tenants live there
        free = client.get(at("page", "/x"), headers={"Host": HOST.format(service="page")})
        assert "content-security-policy" not in free.headers
        client.cookies.clear()
