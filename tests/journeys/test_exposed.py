"""Exposed services: a process of the user's own, reached through the manager by HTTP and WebSocket."""

import json

import httpx
import pytest
import websockets
from websockets.sync.client import connect

from journeys.conftest import MakeService
from journeys.exposing import Expose, at, ready
from journeys.waiting import eventually
from real.manager import Manager


def test_requests_reach_the_process_and_answers_come_back(
    expose: Expose, alice: httpx.Client, nobody: httpx.Client
) -> None:
    name = expose()
    shown = alice.get(f"/system/services/{name}/deployment").json()
    assert (shown["resource_kind"], shown["active_instances"], shown["affected_instances"]) == ("exposed_service", 1, 0)
    assert shown["last_transition_time"].endswith("Z")
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        answer = nobody.request(method, at(name, "/some/where?x=1&y=%2F"), content=b"the body")
        told = answer.json()
        assert (answer.status_code, told["method"], told["body"]) == (200, method, "the body")
        assert told["path"] == at(name, "/some/where?x=1&y=%2F")  # the whole path, unless it is rewritten
    assert answer.headers["x-from"] == "inside"
    assert answer.headers.get_list("set-cookie") == [f"a=1; Path={at(name)}", f"b=2; Path={at(name)}"]
    assert nobody.head(at(name, "/x")).status_code == 200
    assert nobody.get(at(name)).status_code == 200
    assert nobody.get(at(name, "/")).json()["path"] == at(name, "/")
    assert nobody.get(at(name, "/teapot")).status_code == 418  # the service's own word
    assert nobody.get(at(name), headers={"X-Mine": "kept"}).json()["headers"]["x-mine"] == "kept"
    sent = nobody.post(at(name), content=iter([b"in ", b"parts"]))
    assert sent.json()["body"] == "in parts"


def test_the_prefix_can_be_hidden_from_the_process(expose: Expose, nobody: httpx.Client) -> None:
    name = expose(expose={"rewrite_target": True})
    assert nobody.get(at(name, "/deep/path?q=1")).json()["path"] == "/deep/path?q=1"
    assert nobody.get(at(name)).json()["path"] == "/"
    assert nobody.get(at(name)).json()["headers"]["x-forwarded-prefix"] == at(name)


def test_port_80_needs_no_right_inside_the_sandbox(expose: Expose, nobody: httpx.Client) -> None:
    assert nobody.get(at(expose(80), "/on/port/80")).status_code == 200


def test_parts_of_a_stream_arrive_as_they_are_sent(expose: Expose, nobody: httpx.Client) -> None:
    with nobody.stream("GET", at(expose(), "/stream")) as answer:
        parts = list(answer.iter_raw())
    assert parts == [b"first", b"second", b"third"]  # not one piece at the end


def test_web_sockets_talk_both_ways(expose: Expose, manager: Manager) -> None:
    name = expose()
    with connect(f"ws://127.0.0.1:{manager.port}{at(name, '/ws')}", open_timeout=20) as talk:
        for word in ("hello", "again"):
            talk.send(word)
            assert talk.recv(timeout=20) == word.upper()
        talk.send(b"\x00bytes")
        assert talk.recv(timeout=20) == b"\x00BYTES"


def test_set_auth_asks_for_the_services_name_and_token(
    expose: Expose, alice: httpx.Client, nobody: httpx.Client, manager: Manager
) -> None:
    name = expose(expose={"set_auth": True, "auth_type": "basic"})
    token = alice.get(f"/system/services/{name}").json()["token"]
    refused = nobody.get(at(name))
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Basic")
    for user, password, status in ((name, token, 200), (name, "0" * 64, 401), ("other", token, 401)):
        assert nobody.get(at(name), auth=httpx.BasicAuth(user, password)).status_code == status
    assert nobody.get(at(name), params={"token": token}).status_code == 401  # that is for `forward`
    with pytest.raises(websockets.InvalidStatus), connect(f"ws://127.0.0.1:{manager.port}{at(name, '/ws')}"):
        pass
    told = nobody.get(at(name), auth=httpx.BasicAuth(name, token)).json()
    assert told["method"] == "GET"


def test_forward_auth_takes_the_token_from_the_address_and_then_from_a_cookie(
    expose: Expose, alice: httpx.Client, bob: httpx.Client, nobody: httpx.Client
) -> None:
    name = expose(visibility="private", expose={"set_auth": True, "auth_type": "forward"})
    token = alice.get(f"/system/services/{name}").json()["token"]
    assert nobody.get(at(name)).status_code == 401
    assert nobody.get(at(name), params={"token": token}).status_code == 200
    assert nobody.get(at(name), params={"token": "1" * 64}).status_code == 401
    let_in = nobody.get(f"/system/services/{name}/auth", headers={"X-Forwarded-Uri": f"/x?token={token}"})
    assert (let_in.status_code, let_in.content) == (200, b"")
    cookie = let_in.headers["set-cookie"]
    assert cookie.startswith(f"oscar_service_{name.replace('-', '_')}_auth=")
    assert token not in cookie
    assert f"Path={at(name)}" in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    nobody.cookies.clear()
    assert nobody.get(at(name), headers={"Cookie": cookie.partition(";")[0]}).status_code == 200
    assert alice.get(f"/system/services/{name}/auth").status_code == 200
    assert bob.get(f"/system/services/{name}/auth").status_code == 403
    assert nobody.get(f"/system/services/{name}/auth").status_code == 401
    assert nobody.get(f"/system/services/{name}/auth", params={"token": "1" * 64}).status_code == 401
    nobody.cookies.clear()


def test_what_is_not_exposed_is_404(make_service: MakeService, alice: httpx.Client, nobody: httpx.Client) -> None:
    assert nobody.get(at(make_service(alice))).status_code == 404
    assert nobody.get(at("not-there")).status_code == 404


def test_stop_start_and_restart(expose: Expose, alice: httpx.Client, nobody: httpx.Client) -> None:
    name = expose()
    before = nobody.get(at(name)).json()["life"]
    stopped = alice.post(f"/system/services/{name}/stop")
    assert stopped.status_code == 200
    assert stopped.json()["state"] == "stopped"
    eventually(lambda: nobody.get(at(name)).status_code == 503)
    assert alice.get(f"/system/services/{name}/deployment").json()["active_instances"] == 0
    assert alice.post(f"/system/services/{name}/start").status_code == 200
    ready(alice, name)
    started = nobody.get(at(name)).json()["life"]
    assert alice.post(f"/system/services/{name}/restart").status_code == 200

    def lives_anew() -> bool:
        answer = nobody.get(at(name))  # a call that was under way when the old process ended is a 502
        return answer.status_code == 200 and answer.json()["life"] not in (before, started)

    eventually(lives_anew)


def test_a_crashed_process_comes_back(expose: Expose, alice: httpx.Client, nobody: httpx.Client) -> None:
    name = expose()
    assert nobody.get(at(name, "/crash")).status_code == 502
    eventually(lambda: nobody.get(at(name)).status_code == 200)
    ready(alice, name)
    entries = alice.get(f"/system/services/{name}/deployment/logs").json()
    assert list(entries) == ["service_name", "available", "entries"]
    assert "crashing" in [entry["message"] for entry in entries["entries"]]


def test_deployment_logs_have_a_tail_and_times(expose: Expose, alice: httpx.Client, nobody: httpx.Client) -> None:
    name = expose()
    for number in range(3):
        nobody.get(at(name, f"/visit-{number}"))
    path = f"/system/services/{name}/deployment/logs"

    def last() -> list[dict[str, str]]:
        entries: list[dict[str, str]] = alice.get(path, params={"tailLines": "1", "timestamps": "true"}).json()[
            "entries"
        ]
        return entries if "visit-2" in json.dumps(entries) else []

    [entry] = eventually(last)
    assert list(entry) == ["timestamp", "message"]
    for lines, status in (("0", 200), ("-3", 200), ("5000", 200), ("", 200), ("x", 400)):
        assert alice.get(path, params={"tailLines": lines}).status_code == status


def test_a_new_version_takes_over_without_a_gap(expose: Expose, alice: httpx.Client, nobody: httpx.Client) -> None:
    name = expose(environment={"variables": {"VERSION": "one"}})
    changed = alice.get(f"/system/services/{name}").json()
    changed["environment"]["variables"]["VERSION"] = "two"
    assert alice.put("/system/services", json=changed).status_code == 204

    def asked() -> str:
        answer = nobody.get(at(name))
        assert answer.status_code == 200  # somebody always answers
        return str(answer.json()["version"])

    eventually(lambda: asked() == "two")


def test_a_deleted_service_no_longer_answers(expose: Expose, alice: httpx.Client, nobody: httpx.Client) -> None:
    name = expose()
    assert alice.delete(f"/system/services/{name}").status_code == 204
    assert nobody.get(at(name)).status_code == 404


def test_a_process_that_never_listens_is_not_ready(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(alice, "echo no listener; exec sleep 1000", expose={"api_port": [9000], "min_scale": 1})
    shown = alice.get(f"/system/services/{name}/deployment").json()
    assert shown["state"] in ("pending", "failed", "degraded")
    assert shown["reason"]
    assert alice.get(at(name)).status_code == 503
    eventually(lambda: "no listener" in alice.get(f"/system/services/{name}/deployment/logs").text)
