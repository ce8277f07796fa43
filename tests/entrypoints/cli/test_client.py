"""Whatever a manager or the network does, it becomes a typed error with words a person can use."""

import json
import socket
from typing import Any

import httpx
import pytest

from entrypoints.cli.small_server import SmallServer
from hansa.entrypoints.cli import exits
from hansa.entrypoints.cli.client import Manager, refusal, segment
from hansa.kernel import errors


@pytest.mark.parametrize(
    ("status", "body", "message", "code"),
    [
        (400, b"The service specification is not valid: no image", "not valid: no image", 1),
        (401, b"", "does not accept these credentials", 3),
        (403, b"not yours", "not yours", 3),
        (404, b"", "there is no service x in lubeck", 4),
        (404, b"404 page not found", "there is no service x in lubeck", 4),
        (409, b'{"detail":"it exists","hint":"choose another name"}', "it exists", 5),
        (500, b'{"error":"metrics-server is away"}', "metrics-server is away", 1),
        (429, b"too many wrong passwords came from your address (wait)", "too many wrong passwords", 6),
        (503, b"", "lubeck answered 503", 6),
        (502, b"<html>bad gateway</html>", "lubeck answered 502", 6),
        (301, b"", "points to https://new.example", 1),
        (401, b'""', "does not accept", 3),
    ],
)
def test_refusals(status: int, body: bytes, message: str, code: int) -> None:
    response = httpx.Response(status, content=body, headers={"location": "https://new.example"})
    error = refusal(response, "lubeck", "service x")
    assert message in error.message
    assert exits.of(error) == code


def test_the_managers_hint_is_kept() -> None:
    body = json.dumps({"detail": "no", "hint": "do that"})
    assert refusal(httpx.Response(400, text=body), "lubeck").hint == "do that"


def test_a_closed_port_is_unreachable() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound but not listening: nobody else can take the port meanwhile
        with (
            Manager(f"http://127.0.0.1:{held.getsockname()[1]}") as manager,
            pytest.raises(errors.Temporary) as caught,
        ):
            manager.read("/system/info")
    assert "cannot be reached" in caught.value.message
    assert caught.value.hint


def test_silence_has_an_end() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as mute,
        Manager(f"http://127.0.0.1:{mute.getsockname()[1]}") as manager,
        pytest.raises(errors.Temporary) as caught,
    ):
        manager.call("GET", "/system/info", timeout=0.2)
    assert "did not answer within" in caught.value.message


def test_answers_that_are_no_json(server: SmallServer) -> None:
    server.on("GET /system/info", b"<html>").on("GET /system/config", b"")
    with Manager(server.url) as manager:
        with pytest.raises(errors.HansaError, match="did not answer in JSON"):
            manager.read("/system/info")
        with pytest.raises(errors.Forbidden):
            manager.read("/system/config")


def test_names_stay_within_their_place_in_the_path(server: SmallServer) -> None:
    server.on("GET /system/services/a/../b", {"name": "odd"})
    with Manager(server.url) as manager:
        assert manager.service("a/../b") == {"name": "odd"}
    with pytest.raises(errors.Invalid):
        segment("..")


def test_jobs_come_page_by_page(server: SmallServer) -> None:
    def page(names: list[str], following: str | None) -> dict[str, Any]:
        paging = {"next_page": following, "remaining_jobs": 1} if following else {}
        return {"jobs": {name: {"status": "Succeeded"} for name in names}, **paging}

    server.on("GET /system/logs/s", page(["a", "b"], "t1")).on("GET /system/logs/s", page(["c"], "t2"))
    server.on("GET /system/logs/s", page([], "t3")).on("GET /system/logs/s", page(["d"], None))
    with Manager(server.url) as manager:
        assert [name for name, _ in manager.jobs("s")] == ["a", "b", "c", "d"]
    assert [seen.query["page"] for seen in server.seen] == ["", "t1", "t2", "t3"]


def test_pages_that_repeat_themselves_end(server: SmallServer) -> None:
    server.on("GET /system/logs/s", {"jobs": {"a": {"status": "Running"}}, "next_page": "same"})
    with Manager(server.url) as manager:
        assert len(list(manager.jobs("s"))) == 2


def test_the_old_shape_of_jobs(server: SmallServer) -> None:
    server.on("GET /system/logs/s", {"a": {"status": "Succeeded"}})
    with Manager(server.url) as manager:
        assert dict(manager.jobs("s")) == {"a": {"status": "Succeeded"}}


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        (b"it is full (delete one (or two))", "it is full", "delete one (or two)"),
        (b"it is (very) full", "it is (very) full", "ask the owner or the cluster's admin for access"),
        (b"f(x)", "f(x)", "ask the owner or the cluster's admin for access"),
        (b"odd)", "odd)", "ask the owner or the cluster's admin for access"),
    ],
)
def test_a_manager_s_own_hint_is_the_only_one(server: SmallServer, said: bytes, message: str, hint: str) -> None:
    server.on("GET /x", said, status=403)
    with Manager(server.url) as manager, pytest.raises(errors.Forbidden) as refused:
        manager.read("/x")
    assert (refused.value.message, refused.value.hint) == (message, hint)
