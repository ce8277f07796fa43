"""Does a hostile exposed service get anything of its visitors' credentials, or of the manager's origin?

The service echoes what it gets and answers with the headers a test tells it.
"""

import base64
import contextlib
import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import websockets
from websockets.sync.client import connect

from journeys.conftest import Person
from journeys.exposing import Expose, at, definition, ready, script
from real.manager import Manager

Pairs = list[tuple[str, str]]
SANDBOX = "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads"


@pytest.fixture(scope="module")
def page(person: Person) -> Iterator[str]:
    alice, name = person("alice"), "tenants-page"
    body = {"name": name, "image": "debian", "script": script(8080), **definition()}
    assert alice.post("/system/services", json=body).status_code == 201
    ready(alice, name)
    yield name
    assert alice.delete(f"/system/services/{name}").status_code == 204


@pytest.fixture(autouse=True)
def fresh_visitors(manager: Manager, alice: httpx.Client) -> None:
    """Nobody brings cookies from another test."""
    for client in (manager.anonymous, manager.admin, alice):
        client.cookies.clear()


def got(answer: httpx.Response) -> Pairs:
    """The headers that reached the service."""
    assert answer.status_code == 200, answer.text
    return [(name, value) for name, value in answer.json()["all_headers"]]


def values(pairs: Pairs, name: str) -> list[str]:
    return [value for key, value in pairs if key == name]


def said(client: httpx.Client, name: str, headers: list[tuple[str, str]], path: str = "/x") -> httpx.Response:
    """The answer as a visitor gets it, of a service that answers with these headers."""
    answer = client.get(at(name, path), headers={"X-Say": json.dumps(headers)})
    assert answer.status_code == 200, answer.text
    return answer


def cookies_set(answer: httpx.Response) -> list[str]:
    return answer.headers.get_list("set-cookie")


@pytest.mark.parametrize(
    "header",
    [
        ("Authorization", "Basic YWRtaW46c2VjcmV0"),
        ("authorization", "Bearer visitors.own.token"),
        ("AUTHORIZATION", "Negotiate secret"),
        ("Authorization", "secret-without-a-scheme"),
        ("Proxy-Authorization", "Basic secret"),
        ("Proxy_Authorization", "Basic secret"),
        ("Keep-Alive", "timeout=secret"),
        ("TE", "trailers"),
    ],
    ids=lambda header: header[0] + " " + header[1][:9],
)
def test_what_a_visitor_shows_to_the_manager_stays_there(
    page: str, nobody: httpx.Client, header: tuple[str, str]
) -> None:
    found = got(nobody.get(at(page, "/x"), headers=[header, ("X-Mine", "kept")]))
    assert values(found, header[0].lower()) == []
    assert not any("secret" in value or "visitors" in value for _, value in found)
    assert values(found, "x-mine") == ["kept"]


def test_the_admins_password_does_not_reach_a_tenant(page: str, admin: httpx.Client, manager: Manager) -> None:
    found = got(admin.get(at(page, "/x")))
    password = base64.b64encode(f"admin:{manager.password}".encode()).decode()
    assert password not in json.dumps(found)
    assert "authorization" not in dict(found)


def test_headers_named_by_connection_end_here(page: str, nobody: httpx.Client) -> None:
    headers = [("Connection", "keep-alive, X-Hop"), ("connection", "x-Other ,,"), ("X-Hop", "1"), ("X-OTHER", "2")]
    found = got(nobody.get(at(page, "/x"), headers=[*headers, ("X-Kept", "3")]))
    assert (values(found, "x-hop"), values(found, "x-other"), values(found, "x-kept")) == ([], [], ["3"])


def test_connection_cannot_take_away_what_frames_the_body(page: str, nobody: httpx.Client) -> None:
    headers = {"Connection": "content-length, host, x-forwarded-prefix"}
    told = nobody.post(at(page, "/x"), headers=headers, content=b"whole").json()
    assert told["body"] == "whole"
    assert told["headers"]["x-forwarded-prefix"] == at(page)


@pytest.mark.parametrize("name", ["X-Forwarded-Prefix", "X_Forwarded_Prefix"])
def test_a_visitor_cannot_speak_for_the_manager(page: str, nobody: httpx.Client, name: str) -> None:
    found = got(nobody.get(at(page, "/x"), headers={name: "/elsewhere"}))
    assert [value for key, value in found if key.replace("_", "-") == "x-forwarded-prefix"] == [at(page)]


def raw(manager: Manager, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", manager.port), timeout=20) as client:
        client.sendall(request)
        heard = b""
        with contextlib.suppress(ConnectionResetError):
            while chunk := client.recv(65536):
                heard += chunk
        return heard


@pytest.mark.parametrize(
    "lines",
    [
        b"Authorization : Basic secret",
        b"Author\tization: Basic secret",
        b" Authorization: Basic secret",
        b"X-A: 1\r\n Authorization: Basic secret",
        b"Content-Length: 3\r\nTransfer-Encoding: chunked",
        b"Content-Length: 3\r\nContent-Length: 4",
        b"Transfer-Encoding: chunked, identity",
        b"Transfer-Encoding: xchunked",
    ],
)
def test_smuggled_heads_are_refused_or_harmless(page: str, manager: Manager, lines: bytes) -> None:
    head = b"POST %b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%b\r\n\r\n0\r\n\r\n" % (at(page, "/x").encode(), lines)
    answer = raw(manager, head)
    assert b"Basic secret" not in answer.partition(b"\r\n\r\n")[2]
    assert answer.count(b"HTTP/1.1 ") == 1


OURS = "oscar_service_{}_auth"


def test_cookies_of_the_manager_do_not_reach_the_service(page: str, alice: httpx.Client, manager: Manager) -> None:
    let_in = alice.get(f"/system/services/{page}/auth").headers["set-cookie"]
    name, _, value = let_in.partition(";")[0].partition("=")
    tricks = [
        f"{name}={value}",
        f"{name.upper()}={value}",
        f'{name}="{value}"',
        f" {name} = {value}",
        f"__Host-{name}={value}",
        f"__secure-{name}={value}",
        f'"{name}"={value}',
        f"{OURS.format('other')}=secret",
        f"{name}",
        "hansa_session=secret",
        "__Host-hansa-session=secret",
    ]
    for trick in tricks:
        for header in (f"a=1; {trick}; b=2", f"a=1;{trick};b=2"):
            found = got(manager.anonymous.get(at(page, "/x"), headers={"Cookie": header}))
            assert values(found, "cookie") == ["a=1; b=2"], trick
            assert value not in json.dumps(found), trick
    headers = [("Cookie", f"a=1; {name}={value}"), ("cookie", f"{name}={value}"), ("COOKIE", "b=2")]
    found = got(manager.anonymous.get(at(page, "/x"), headers=headers))
    assert values(found, "cookie") == ["a=1; b=2"]


def test_cookies_of_the_service_come_back_to_it_alone(page: str, nobody: httpx.Client) -> None:
    asked = [
        ("Set-Cookie", "plain=1"),
        ("set-cookie", "rooted=1; Path=/; HttpOnly"),
        ("SET-COOKIE", "wide=1; path = / ; Domain=127.0.0.1; Max-Age=60; SameSite=None; Secure"),
        ("Set-Cookie", f"deep=1; Path={at(page)}/deep"),
        ("Set-Cookie", f"twice=1; Path={at(page)}/deep; PATH=/"),
        ("Set-Cookie", "elsewhere=1; Path=/system/services/other/exposed"),
        ("Set-Cookie", f"beside=1; Path={at(page)}-beside"),
        ("Set-Cookie", f"above=1; Path={at(page)}/../../.."),
        ("Set-Cookie", f"hidden=1; Path={at(page)}/%2e%2e/%2e%2e"),
    ]
    answer = said(nobody, page, asked)
    nobody.cookies.clear()
    kept = {one.partition("=")[0]: one for one in cookies_set(answer)}
    for name, cookie in kept.items():
        attributes = [part.strip().lower() for part in cookie.split(";")[1:]]
        paths = [part for part in attributes if part.startswith("path")]
        wanted = f"path={at(page)}/deep" if name == "deep" else f"path={at(page)}"
        assert paths == [wanted], cookie
        assert not any(part.startswith("domain") for part in attributes), cookie
    assert {"a", "b", "plain", "rooted", "wide", "deep", "twice", "elsewhere", "beside", "above", "hidden"} == set(kept)
    assert {"HttpOnly"} <= {part.strip() for part in kept["rooted"].split(";")}
    assert {"Max-Age=60", "SameSite=None", "Secure"} <= {part.strip() for part in kept["wide"].split(";")}


@pytest.mark.parametrize(
    "cookie",
    [
        "{ours}=mine",
        "{OURS}=mine",
        " {ours} =mine",
        '"{ours}"=mine',
        "oscar_service_other_auth=mine",
        "__Host-{ours}=mine; Secure; Path=/",
        "__secure-{ours}=mine; Secure",
        "__Host-anything=mine; Secure; Path=/",
        "={ours}=mine",
        "{ours}",
        "=nameless",
        "nameless",
        "hansa_anything=mine",
    ],
)
def test_a_service_cannot_set_our_cookies(page: str, nobody: httpx.Client, cookie: str) -> None:
    ours = OURS.format(page.replace("-", "_"))
    given = cookie.format(ours=ours, OURS=ours.upper())
    answer = said(nobody, page, [("Set-Cookie", given), ("Set-Cookie2", given)])
    nobody.cookies.clear()
    assert [one.partition("=")[0] for one in cookies_set(answer)] == ["a", "b"]
    assert "set-cookie2" not in answer.headers


@pytest.mark.parametrize("header", ["Set-Cookie", "X-Own"])
def test_control_characters_are_no_answer(page: str, nobody: httpx.Client, header: str) -> None:
    answer = nobody.get(at(page, "/x"), headers={"X-Say": json.dumps([(header, "a\x01b=1")])})
    assert (answer.status_code, answer.headers.get_list("set-cookie")) == (502, [])


@pytest.mark.parametrize(
    "name",
    ["Service-Worker-Allowed", "Clear-Site-Data", "Strict-Transport-Security", "Alt-Svc", "WWW-Authenticate",
     "Proxy-Authenticate", "X-Accel-Redirect", "X-Sendfile", "Public-Key-Pins", "NEL", "Report-To", "Keep-Alive",
     "Upgrade", "Refresh-Hop"],
)  # fmt: skip
def test_what_speaks_for_the_whole_origin_does_not_pass(page: str, nobody: httpx.Client, name: str) -> None:
    for spelled in (name, name.lower(), name.upper()):
        answer = said(nobody, page, [(spelled, "secret"), ("Connection", "keep-alive, Refresh-Hop"), ("X-Own", "1")])
        nobody.cookies.clear()
        assert name.lower() not in answer.headers
        assert answer.headers["x-own"] == "1"


def test_pages_run_in_the_browsers_sandbox(page: str, nobody: httpx.Client) -> None:
    answer = said(nobody, page, [("Content-Security-Policy", "default-src 'self'"), ("X-Content-Type-Options", "x")])
    nobody.cookies.clear()
    policies = answer.headers.get_list("content-security-policy")
    assert policies == ["default-src 'self'", SANDBOX]  # both hold: browsers take the strictest of each
    assert "allow-same-origin" not in policies[1]
    assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
    plain = nobody.get(at(page, "/stream"))
    assert plain.headers.get_list("content-security-policy") == [SANDBOX]


@pytest.mark.parametrize("header", [("Service-Worker", "script"), ("service-worker", "Script")])
def test_no_service_workers(page: str, nobody: httpx.Client, header: tuple[str, str]) -> None:
    assert nobody.get(at(page, "/worker.js"), headers=[header]).status_code == 403


def socket_headers(manager: Manager, name: str, **how: Any) -> Pairs:
    url = f"ws://127.0.0.1:{manager.port}{at(name, '/ws')}"
    with connect(url, open_timeout=20, **how) as talk:
        talk.send("headers")
        return [(key, value) for key, value in json.loads(talk.recv(timeout=20))]


def test_web_sockets_follow_the_same_rules(page: str, manager: Manager, alice: httpx.Client) -> None:
    cookie = alice.get(f"/system/services/{page}/auth").headers["set-cookie"].partition(";")[0]
    alice.cookies.clear()
    headers = [("Cookie", f"a=1; {cookie}"), ("cookie", cookie.upper()), ("Cookie", "b=2"),
               ("Authorization", "Basic secret"), ("Proxy-Authorization", "Basic secret")]  # fmt: skip
    found = socket_headers(manager, page, additional_headers=headers, origin="https://page.example.org")
    assert values(found, "cookie") == ["a=1; b=2"]
    assert values(found, "origin") == ["https://page.example.org"]
    assert not {"authorization", "proxy-authorization"} & {name for name, _ in found}


def test_another_sites_page_cannot_open_a_private_socket(expose: Expose, manager: Manager) -> None:
    name = expose(visibility="private")
    password = base64.b64encode(f"admin:{manager.password}".encode()).decode()
    mine = {"Authorization": f"Basic {password}"}  # a browser sends what it was told once, whoever asks
    own = f"http://127.0.0.1:{manager.port}"
    assert socket_headers(manager, name, additional_headers=mine, origin=own)
    assert socket_headers(manager, name, additional_headers=mine)
    for origin in ("http://evil.example.org", "null", f"http://127.0.0.1:{manager.port + 1}"):
        with pytest.raises(websockets.InvalidStatus):
            socket_headers(manager, name, additional_headers=mine, origin=origin)
