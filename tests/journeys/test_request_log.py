"""Who did what? Each request's line in the log names the caller and the address it came from, and no secret."""

import json
from typing import Any

import httpx

from journeys.conftest import MakeService
from journeys.waiting import eventually
from real.manager import Manager


def line_of(manager: Manager, request: str) -> dict[str, Any]:
    """The one line of this request. It is written after the answer went out, so it may come a moment later."""

    def lines() -> list[dict[str, Any]]:
        told = [json.loads(line) for line in manager.log.splitlines() if f'"{request}"' in line]
        return [line for line in told if line.get("event") == "request"]

    (found,) = eventually(lines, what=f"the log line of {request}")
    return found


def asked(manager: Manager, client: httpx.Client, name: str, path: str, method: str = "GET") -> tuple[str, str]:
    client.request(method, path, headers={"X-Request-Id": name, "X-Forwarded-For": "203.0.113.7, 198.51.100.9"})
    line = line_of(manager, name)
    return line["caller"], line["client"]


def test_people(manager: Manager, alice: httpx.Client) -> None:
    own = alice.get("/system/config").json()["minio_provider"]["access_key"]
    assert asked(manager, alice, "log-alice", "/system/services") == (own, "198.51.100.9")
    assert asked(manager, manager.admin, "log-admin", "/system/services") == ("cluster_admin", "198.51.100.9")
    assert asked(manager, manager.anonymous, "log-nobody", "/system/services") == ("-", "198.51.100.9")
    wrong = manager.bearer("e" * 64)
    assert asked(manager, wrong, "log-wrong", "/system/services") == ("-", "198.51.100.9")


def test_tokens_of_services(manager: Manager, alice: httpx.Client, make_service: MakeService) -> None:
    name = make_service(alice, "true")
    token = alice.get(f"/system/services/{name}").json()["token"]
    assert asked(manager, manager.bearer(token), "log-token", f"/job/{name}", "POST")[0] == f"service {name}"
    assert asked(manager, manager.anonymous, "log-stranger", f"/job/{name}", "POST")[0] == "-"
    assert token not in manager.log


def test_without_a_proxy_it_is_the_address_of_the_connection(manager: Manager) -> None:
    manager.anonymous.get("/health", headers={"X-Request-Id": "log-direct"})
    assert line_of(manager, "log-direct")["client"] == "127.0.0.1"
