"""Does each question go out as the wire page says, and is each answer taken for what it is worth?

What a real manager answers is in `test_real_manager.py`; here are the answers it would not give.
"""

import json
import time
from typing import Any

import pytest

from drivers.oscar.conftest import TOKEN, OpenPeer
from drivers.oscar.rogue import Rogue, rogue_server
from hansa.drivers.oscar import Limits, OscarPeer
from hansa.services import Service, peers
from hansa.services.service import Environment
from hansa.storage import Keys, StoreAddress

PERMIT = "5a" * 32
AWAY = "/v1/delegations/job-1"
ABOUT = {"product": "hansa", "version": "0.1.0", "capabilities": ["delegation-permits", "mesh-tokens"]}
HANDOVER = peers.Handover(
    service="gray-b",
    job="gray-a-1",
    body=b"\x00\xff not JSON",
    from_service="gray-a",
    origin="lubeck",
    path=("riga", "lubeck"),
    permit=PERMIT,
    headers={"X-Member": "mine", "authorization": "Bearer theirs", "X-HANSA-permit": "forged", "host": "evil.example",
             "Transfer-Encoding": "chunked", "x-delegated-job-id": "other"},
)  # fmt: skip


@pytest.fixture
def peer(rogue: Rogue, open_peer: OpenPeer) -> OscarPeer:
    return open_peer(rogue.url)


async def test_a_job_is_handed_over_with_its_headers(rogue: Rogue, peer: OscarPeer, bearer: peers.Credentials) -> None:
    rogue.say("/job/gray-b", b"", 201)
    await peer.hand_over(HANDOVER, bearer)
    (sent,) = rogue.got
    assert (sent.method, sent.path, sent.body) == ("POST", "/job/gray-b", b"\x00\xff not JSON")
    expected = {
        "authorization": f"Bearer {TOKEN}",
        "x-delegated-job-id": "gray-a-1",
        "x-delegated-from": "lubeck",
        "x-hansa-permit": PERMIT,
        "x-hansa-origin": "lubeck",
        "x-hansa-service": "gray-a",
        "x-hansa-path": "riga,lubeck",
        "x-member": "mine",
        "host": rogue.url.removeprefix("http://"),
    }
    assert {name: sent.headers[name] for name in expected} == expected
    assert "transfer-encoding" not in sent.headers
    assert "content-type" not in sent.headers


@pytest.mark.parametrize("status", [200, 202, 204, 400, 401, 404, 409, 500])
async def test_only_201_is_accepted_and_nothing_is_tried_again(
    status: int, rogue: Rogue, peer: OscarPeer, bearer: peers.Credentials
) -> None:
    rogue.say("/job/gray-b", b"" if status == 204 else f"no {PERMIT} mine".encode(), status, "text/plain")
    with pytest.raises(peers.PeerRefused) as refused:
        await peer.hand_over(HANDOVER, bearer)
    assert refused.value.status == status
    assert PERMIT not in str(refused.value)
    assert "mine" not in str(refused.value)
    assert len(rogue.got) == 1


@pytest.mark.parametrize(
    "header", [("a b", "x"), ("", "x"), ("a:", "x"), ("a", "x\r\ny: z"), ("a", "ü"), ("a\r\nb", "x")]
)
async def test_a_header_that_cannot_be_sent_is_a_refusal(
    header: tuple[str, str], rogue: Rogue, peer: OscarPeer, bearer: peers.Credentials
) -> None:
    job = peers.Handover("gray-b", "j", b"", "a", "lubeck", (), PERMIT, dict([header]))
    with pytest.raises(peers.PeerRefused, match="cannot be sent"):
        await peer.hand_over(job, bearer)
    assert rogue.got == []


async def test_a_definition_is_sent_as_json(rogue: Rogue, peer: OscarPeer, bearer: peers.Credentials) -> None:
    rogue.say("/v1/about", ABOUT)
    rogue.say("/system/services", b"the-refresh-token is bad", 400, "text/plain")
    secret = Service(name="gray", cpu="250m", environment=Environment(secrets={"refresh_token": "the-refresh-token"}))
    with pytest.raises(peers.PeerRefused, match="is bad") as refused:
        await peer.create(secret, bearer)
    assert "the-refresh-token" not in str(refused.value)
    sent = rogue.got[-1]
    assert (sent.method, sent.headers["content-type"]) == ("POST", "application/json")
    body = json.loads(sent.body)
    assert (body["cpu"], body["environment"]["secrets"]) == ("0.25", {"refresh_token": "the-refresh-token"})


@pytest.mark.parametrize("verb", ["create", "update", "put_back"])
async def test_a_definition_goes_as_it_was_planned_and_nobody_is_asked_what_they_are(
    verb: str, rogue: Rogue, peer: OscarPeer, bearer: peers.Credentials
) -> None:
    """Whoever could answer that now could answer it in a way that brings more."""
    rogue.say("/system/services", b"", 201 if verb == "create" else 204)
    given = {"hansa.group-key": "k" * 64, "API_KEY": "mine"}
    service = Service(name="gray", environment=Environment(secrets=given))
    if verb == "put_back":
        await peer.put_back({"name": "gray", "environment": {"secrets": given}}, bearer, blanks=True)
    else:
        await getattr(peer, verb)(service, bearer)
    [sent] = rogue.got
    assert json.loads(sent.body)["environment"]["secrets"] == given


@pytest.mark.parametrize("blanks", [True, False])
async def test_blank_secrets_go_only_to_those_who_keep_theirs(
    blanks: bool, rogue: Rogue, peer: OscarPeer, bearer: peers.Credentials
) -> None:
    rogue.say("/system/services", b"Updated with federation warnings: []", 200, "text/plain")
    kept = {"name": "gray", "environment": {"variables": {}, "secrets": {"a": ""}}, "deployment": {}, "extra": [1]}
    await peer.put_back(kept, bearer, blanks=blanks)
    sent = json.loads(rogue.got[-1].body)
    assert rogue.got[-1].method == "PUT"
    assert sent["environment"]["secrets"] == ({"a": ""} if blanks else {})
    assert "deployment" not in sent
    assert sent["extra"] == [1]


async def test_removing_what_is_not_there(rogue: Rogue, peer: OscarPeer, bearer: peers.Credentials) -> None:
    rogue.say("/system/services/gone", b"", 404)
    await peer.remove("gone", bearer)
    rogue.say("/system/services/gray", {"name": "gray"}, 500)
    with pytest.raises(peers.PeerRefused):
        await peer.remove("gray", bearer)
    with pytest.raises(peers.PeerRefused):  # a proxy's 404 is no proof
        await peer.remove("unrouted", bearer)


async def test_oscar_on_knative_says_500_of_a_missing_service(open_peer: OpenPeer, bearer: peers.Credentials) -> None:
    async with rogue_server() as knative:
        deleted, missing = "/system/services/gray", "/missing"
        knative.say(missing, b"", 404)
        knative.say(deleted, b"cannot delete", 500, "text/plain")
        first, then = knative.acts[deleted], knative.acts[missing]

        async def act(writer: Any) -> None:
            await (first if knative.got[-1].method == "DELETE" else then)(writer)

        knative.acts[deleted] = act
        await open_peer(knative.url).remove("gray", bearer)


async def test_what_a_peer_is_is_asked_once(rogue: Rogue, peer: OscarPeer) -> None:
    rogue.say("/v1/about", ABOUT)
    assert await peer.capabilities()
    assert await peer.capabilities() == frozenset({"delegation-permits", "mesh-tokens"})
    assert rogue.paths() == ["/v1/about"]
    assert "authorization" not in rogue.got[0].headers


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (404, b"404 page not found", "text/plain"),
        (401, b"", ""),
        (200, b"<html>the dashboard</html>", "text/html"),
        (200, b'{"product":"other"}', "application/json"),
    ],
)
async def test_a_manager_without_about_is_an_oscar(
    status: int, body: bytes, kind: str, rogue: Rogue, peer: OscarPeer
) -> None:
    rogue.say("/v1/about", body, status, kind)
    rogue.say("/health", b"Ok", kind="text/plain")
    assert not await peer.capabilities()
    assert await peer.capabilities() == frozenset()


async def test_a_proxy_without_a_manager_is_neither(rogue: Rogue, peer: OscarPeer) -> None:
    with pytest.raises(peers.PeerRefused):
        await peer.capabilities()
    rogue.say("/health", b"<html>welcome</html>", kind="text/html")
    with pytest.raises(peers.PeerRefused):
        await peer.capabilities()
    rogue.say("/v1/about", ABOUT)
    assert await peer.capabilities()


async def test_a_peer_that_is_down_stays_what_it_was(rogue: Rogue, open_peer: OpenPeer) -> None:
    peer = open_peer(rogue.url, limits=Limits(call_timeout=0.2, kind_fresh=0.0))
    rogue.hang("/v1/about")
    with pytest.raises(peers.PeerUnreachable):
        await peer.capabilities()
    rogue.say("/v1/about", ABOUT)
    assert await peer.capabilities()
    rogue.hang("/v1/about")
    assert await peer.capabilities()


async def test_a_job_away(rogue: Rogue, peer: OscarPeer) -> None:
    now = time.time()
    told = {"status": "Failed", "started": now - 1.5, "finished": int(now), "exit_code": 3, "reason": "x"}
    rogue.say(AWAY, {**told, "cpu_seconds": 2})
    assert await peer.away_job("job-1", PERMIT) == peers.AwayJob("Failed", now - 1.5, int(now), 3, "x", 2.0)
    assert rogue.got[0].headers["authorization"] == f"Permit {PERMIT}"
    rogue.say(AWAY, {"status": "Running", "started": "yes", "exit_code": True, "cpu_seconds": -1, "reason": ["a"]})
    assert await peer.away_job("job-1", PERMIT) == peers.AwayJob("Running")
    rogue.say(AWAY, {"status": "Lost"})
    with pytest.raises(peers.PeerRefused):
        await peer.away_job("job-1", PERMIT)


async def test_never_got_it_is_believed_only_from_the_manager(rogue: Rogue, peer: OscarPeer) -> None:
    rogue.problem(AWAY, 404, "delegation.unknown")
    assert await peer.away_job("job-1", PERMIT) is None
    await peer.cancel("job-1", PERMIT)
    for body, kind in ((b"404 page not found", "text/plain"), (b'{"type":"about:blank"}', "application/problem+json")):
        rogue.say(AWAY, body, 404, kind)
        with pytest.raises(peers.PeerRefused):
            await peer.away_job("job-1", PERMIT)
        with pytest.raises(peers.PeerRefused):
            await peer.cancel("job-1", PERMIT)


async def test_the_right_to_publish_is_lost_only_by_the_origins_word(rogue: Rogue, peer: OscarPeer) -> None:
    rogue.say(f"{AWAY}/publish", b"", 204)
    assert await peer.may_publish("job-1", PERMIT) is True
    assert (rogue.got[0].method, rogue.got[0].headers["content-length"]) == ("POST", "0")
    rogue.problem(f"{AWAY}/publish", 409, "delegation.superseded")
    assert await peer.may_publish("job-1", PERMIT) is False
    rogue.say(f"{AWAY}/publish", b"conflict", 409, "text/plain")
    with pytest.raises(peers.PeerRefused):
        await peer.may_publish("job-1", PERMIT)
    rogue.problem(f"{AWAY}/publish", 403, "delegation.permit")
    with pytest.raises(peers.PeerRefused) as refused:
        await peer.may_publish("job-1", PERMIT)
    assert refused.value.problem == "delegation.permit"


async def test_the_log_of_a_job_away(rogue: Rogue, peer: OscarPeer) -> None:
    rogue.say(f"{AWAY}/log?timestamps=true", b"2026 h\xff", kind="text/plain")
    rogue.say(f"{AWAY}/log", b"h\xc3\xa4", kind="text/plain")
    assert await peer.away_log("job-1", PERMIT, timestamps=False) == "hä"
    assert await peer.away_log("job-1", PERMIT, timestamps=True) == "2026 h\ufffd"


async def test_keys_of_the_origins_store(rogue: Rogue, peer: OscarPeer, bearer: peers.Credentials) -> None:
    given = {"endpoint": "https://s3.example.org", "verify": False, "access_key": "alice", "secret_key": "s3s3s3s3"}
    wanted = StoreAddress("https://s3.example.org", "us-east-1", False), Keys("alice", "s3s3s3s3")
    rogue.say(f"{AWAY}/storage", {"minio_provider": given})
    assert await peer.origin_storage("job-1", PERMIT) == wanted[0].with_keys(wanted[1])
    shared = {"endpoint": "https://s3.example.org", "access_key": "", "secret_key": "", "reach": "{}"}
    rogue.say(f"{AWAY}/storage", {"minio_provider": shared})
    assert (await peer.origin_storage("job-1", PERMIT))["reach"] == "{}"
    rogue.say("/system/config", {"config": {}, "minio_provider": given})
    assert await peer.storage_keys(bearer) == wanted
    for lie in ({}, {"minio_provider": None}, {"minio_provider": {**given, "endpoint": "file:///etc"}},
                {"minio_provider": {**given, "secret_key": 5}}):  # fmt: skip
        rogue.say("/system/config", lie)
        with pytest.raises(peers.PeerRefused) as refused:
            await peer.storage_keys(bearer)
        assert "s3s3" not in str(refused.value)


async def test_a_fresh_token(rogue: Rogue, peer: OscarPeer) -> None:
    path = "/v1/services/gray/access-token"
    rogue.say(path, {"access_token": "abc", "expires_in": 60})
    token, expires = await peer.fresh_token("gray", "6b" * 32)
    assert token == "abc"
    assert expires > 1_700_000_000
    assert rogue.got[0].headers["authorization"] == f"GroupKey {'6b' * 32}"
    lies: list[dict[str, Any]] = [
        {},
        {"access_token": "abc"},
        {"access_token": "", "expires_in": 1},
        {"access_token": "a\nb", "expires_in": 60},
        {"access_token": "abc", "expires_in": "60"},
        {"access_token": "a" * 99_999, "expires_in": 60},
    ]
    for lie in lies:
        rogue.say(path, lie)
        with pytest.raises(peers.PeerRefused):
            await peer.fresh_token("gray", "6b" * 32)
