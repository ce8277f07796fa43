"""What goes over the wire, what comes back, and when it is tried again: on both clients."""

import asyncio
import base64
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from client.both import Ask, on_both
from entrypoints.cli.small_server import SmallServer
from hansa.client import AsyncHubClient, HubClient, errors
from hansa.kernel.errors import HansaError, Kind
from hansa.messages.clusters import Coordinates, FactsChange, NewToken

LUBECK = {
    "id": "lubeck", "kind": "hansa", "state": "ready", "since": 1.0, "reason": "it reports", "cordoned": False,
    "joined": 1.0, "seen": 2.0, "facts": {"region": "eu", "of_a_newer_hub": 1},
}  # fmt: skip


@on_both
def test_an_answer_is_read_and_unknown_fields_pass(server: SmallServer, ask: Ask) -> None:
    server.on("GET /v1/clusters", {"age": 0.1, "clusters": [LUBECK], "new": True})
    found = ask(server.url + "/", "clusters", selector="region=eu gpu>0")
    assert [one.id for one in found.clusters] == ["lubeck"]
    (seen,) = server.seen
    assert seen.query == {"selector": "region=eu gpu>0"}
    assert seen.headers["user-agent"].startswith("hansa-client/")
    assert "authorization" not in seen.headers
    ask(server.url, "clusters")
    assert server.seen[1].query == {}


@on_both
def test_names_stay_one_piece_of_the_path(server: SmallServer, ask: Ask) -> None:
    server.on("GET /v1/clusters/a/b ?", LUBECK)
    assert ask(server.url, "cluster", "a/b ?").id == "lubeck"
    for name in ("", ".", ".."):
        with pytest.raises(errors.Invalid):
            ask(server.url, "cluster", name)
    assert len(server.seen) == 1


@on_both
def test_what_was_not_said_does_not_travel(server: SmallServer, ask: Ask) -> None:
    server.on("PATCH /v1/clusters/lubeck", LUBECK)
    ask(server.url, "change_facts", "lubeck", FactsChange(region="eu"))
    ask(server.url, "change_facts", "lubeck", FactsChange(coordinates=None, name=""))
    ask(server.url, "change_facts", "lubeck", FactsChange(coordinates=Coordinates(latitude=1, longitude=2)))
    assert [seen.json() for seen in server.seen] == [
        {"region": "eu"},
        {"coordinates": None, "name": ""},
        {"coordinates": {"latitude": 1.0, "longitude": 2.0}},
    ]
    assert server.seen[0].headers["content-type"] == "application/json"


@on_both
def test_flags_travel_only_when_set(server: SmallServer, ask: Ask) -> None:
    server.on("DELETE /v1/clusters/x", status=204)
    assert ask(server.url, "remove_cluster", "x") is None
    assert ask(server.url, "remove_cluster", "x", force=True) is None
    assert [seen.query for seen in server.seen] == [{}, {"force": "true"}]


@on_both
def test_signs_in(server: SmallServer, ask: Ask) -> None:
    server.on("GET /v1/clusters", {"age": 0, "clusters": []})
    tokens = iter(["one", "two"])
    for options in ({"user": "admin", "password": "p:w"}, {"token": "jwt"}, {"token": lambda: next(tokens)}):
        ask(server.url, "clusters", options=options)
    basic = base64.b64encode(b"admin:p:w").decode()
    assert [one.headers["authorization"] for one in server.seen] == [f"Basic {basic}", "Bearer jwt", "Bearer one"]


PROBLEM = {
    "type": "/problems/federation.no-such-cluster", "title": "There is none.", "status": 404,
    "detail": "there is no cluster 'x'", "hint": "hansa cluster ls", "known": ["lubeck"],
}  # fmt: skip


@on_both
def test_a_refusal_speaks_as_the_hub_does(server: SmallServer, ask: Ask) -> None:
    server.on("GET /v1/clusters/x", PROBLEM, status=404, Content_Type="application/problem+json")
    with pytest.raises(errors.NotFound) as caught:
        ask(server.url, "cluster", "x")
    error: HansaError = caught.value
    assert isinstance(error, errors.HubError)
    assert (error.code, error.status, error.kind) == ("federation.no-such-cluster", 404, Kind.NOT_FOUND)
    assert (error.message, error.hint) == ("there is no cluster 'x'", "hansa cluster ls")
    assert error.facts == {"known": ["lubeck"]}
    assert errors.NotFound.code == "client.refused"
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, errors.Invalid), (401, errors.Unauthenticated), (403, errors.Forbidden), (409, errors.Conflict),
     (413, errors.TooLarge), (418, errors.Refused), (500, errors.Failed), (302, errors.Unexpected)],
)  # fmt: skip
@on_both
def test_every_status_has_its_error(server: SmallServer, ask: Ask, status: int, kind: type[errors.HubError]) -> None:
    server.on("GET /v1/federation/status", b"<html>no hub</html>", status=status)
    with pytest.raises(kind) as caught:
        ask(server.url, "federation_status")
    assert type(caught.value) is kind
    assert caught.value.status == status
    assert "<html>" not in caught.value.message


@pytest.mark.parametrize("body", [b"", b"Ok", b"[]", b'{"age": "old"}'])
@on_both
def test_an_answer_of_something_else(server: SmallServer, ask: Ask, body: bytes) -> None:
    server.on("GET /v1/clusters", body)
    with pytest.raises(errors.Unexpected, match="does not understand") as caught:
        ask(server.url, "clusters")
    assert caught.value.hint


@on_both
def test_reading_is_tried_again_and_changing_is_not(server: SmallServer, ask: Ask) -> None:
    server.on("GET /v1/clusters", status=503, Retry_After="0").on("GET /v1/clusters", {"age": 0, "clusters": []})
    assert ask(server.url, "clusters").clusters == ()
    server.on("POST /v1/cluster-tokens", status=503, Retry_After="0")
    with pytest.raises(errors.Unavailable) as caught:
        ask(server.url, "create_token", NewToken())
    assert caught.value.retry_after == 0
    assert (len(server.calls("GET")), len(server.calls("POST"))) == (2, 1)
    server.on("GET /v1/federation/status", status=502)
    with pytest.raises(errors.Unavailable):
        ask(server.url, "federation_status", options={"retries": 0})
    assert len(server.calls("GET")) == 3


@on_both
def test_no_try_goes_past_the_time_limit(server: SmallServer, ask: Ask) -> None:
    server.on("GET /v1/clusters", status=503, Retry_After="3600")
    with pytest.raises(errors.Unavailable) as caught:
        ask(server.url, "clusters")
    assert caught.value.retry_after == 3600
    assert len(server.seen) == 1


@on_both
def test_nobody_there(ask: Ask) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(errors.Unreachable, match="cannot be reached") as caught:
            ask(url, "clusters", options={"retries": 1})
    assert (caught.value.kind, caught.value.status) == (Kind.UNAVAILABLE, 0)
    for wrong in ("ftp://hub", "http://[::1"):
        with pytest.raises(errors.Invalid):
            ask(wrong, "clusters")


@on_both
def test_proxies_are_the_environments_or_nobodys(
    server: SmallServer, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.on("GET /v1/clusters", {"age": 0, "clusters": []})
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with pytest.raises(errors.Unreachable):
        ask(server.url, "clusters", options={"retries": 0})
    assert ask(server.url, "clusters", options={"trust_env": False}).clusters == ()


@contextmanager
def trickling() -> Iterator[str]:
    """Answers a byte now and then, for ever."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            listener.settimeout(10)
            with suppress(OSError):
                link, _ = listener.accept()
                with link:
                    link.recv(65536)
                    link.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                    while not stop.wait(0.05):
                        link.sendall(b"1\r\n \r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            stop.set()
            thread.join(12)


@on_both
def test_a_hub_that_trickles_is_too_slow(ask: Ask) -> None:
    with trickling() as url, pytest.raises(errors.TooSlow, match=r"within 0\.3 s") as caught:
        ask(url, "clusters", options={"timeout": 0.3})
    assert caught.value.kind is Kind.UNAVAILABLE


def test_another_limit_for_one_call() -> None:
    with trickling() as url, HubClient(url) as hub:
        with pytest.raises(errors.TooSlow, match=r"within 0\.2 s"):
            hub.within(0.2).clusters()
        assert hub.within(0.2).url == hub.url


async def test_many_at_once(server: SmallServer) -> None:
    server.on("GET /v1/clusters", {"age": 0, "clusters": [LUBECK]})
    async with AsyncHubClient(server.url) as hub, asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(hub.clusters()) for _ in range(20)]
    assert {len(one.result().clusters) for one in asked} == {1}
