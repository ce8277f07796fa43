"""Is every call bounded, whatever the other side does, and does nothing we send go anywhere else?"""

import asyncio
import time
import tracemalloc
from pathlib import Path

import pytest

from drivers.oscar.conftest import TOKEN, OpenPeer
from drivers.oscar.rogue import Rogue, rogue_server
from hansa.drivers.oscar import Limits, OscarPeers
from hansa.kernel.federation import FederationSettings, KnownCluster
from hansa.services import peers
from real.manager import free_port
from real.self_signed import self_signed

STATUS = "/system/status"
SERVICE = "/system/services/gray"
EMPTY = {"cluster": {"nodes_count": 0, "metrics": {}, "nodes": None}}


async def test_a_peer_that_is_not_there_was_sent_nothing(open_peer: OpenPeer, bearer: peers.Credentials) -> None:
    peer = open_peer(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(peers.PeerUnreachable, match="cannot be reached") as failed:
        await peer.read("gray", bearer)
    assert failed.value.sent is False


async def test_a_hung_peer_costs_its_time_limit(rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials) -> None:
    rogue.hang(STATUS)
    begun = time.perf_counter()
    with pytest.raises(peers.PeerUnreachable, match=r"within 0\.3 s") as failed:
        await open_peer(rogue.url).status(bearer, 0.3)
    assert time.perf_counter() - begun < 2
    assert failed.value.sent is True
    async with asyncio.timeout(5):
        await rogue.left.wait()  # no connection is left behind


async def test_dripping_does_not_stretch_the_limit(
    rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials
) -> None:
    rogue.drip(STATUS)
    begun = time.perf_counter()
    with pytest.raises(peers.PeerUnreachable):
        await open_peer(rogue.url).status(bearer, 0.3)
    assert time.perf_counter() - begun < 2


async def test_one_that_hangs_holds_nobody_up(rogue: Rogue, elsewhere: Rogue, bearer: peers.Credentials) -> None:
    """Its calls take their own turns, not all connections."""
    rogue.hang(STATUS)
    elsewhere.say(STATUS, EMPTY)
    known = {"slow": KnownCluster(endpoint=rogue.url), "quick": KnownCluster(endpoint=elsewhere.url)}
    found = OscarPeers(FederationSettings(clusters=known), limits=Limits(connections=4, at_once=2))
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        stuck = [tasks.create_task(found.find("slow").status(bearer, 15), name=f"stuck {n}") for n in range(20)]
        while len(rogue.got) < 2:
            await asyncio.sleep(0.01)
        for _ in range(10):
            await found.find("quick").status(bearer, 2)
        for task in stuck:
            task.cancel()
    await found.close()


async def test_a_flood_is_cut_off_early(rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials) -> None:
    rogue.flood(STATUS, 100 * 2**20)
    tracemalloc.start()
    try:
        with pytest.raises(peers.PeerRefused, match="more than"):
            await open_peer(rogue.url).status(bearer, 20)
        assert tracemalloc.get_traced_memory()[1] < 40 * 2**20
    finally:
        tracemalloc.stop()


async def test_a_flood_in_a_refusal_is_not_quoted(rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials) -> None:
    rogue.flood(STATUS, 2**20, status=500)
    with pytest.raises(peers.PeerRefused) as refused:
        await open_peer(rogue.url).status(bearer, 20)
    assert refused.value.status == 500
    assert "xxx" not in str(refused.value)


@pytest.mark.parametrize(
    "before",
    [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{", b"HTTP/1.1 200", b"SSH-2.0-OpenSSH_9\r\n",
     b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n10\r\nabc", b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 50_000],
)  # fmt: skip
async def test_a_cut_answer_leaves_the_fate_unknown(
    before: bytes, rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials
) -> None:
    rogue.cut(SERVICE, before)
    with pytest.raises(peers.PeerUnreachable, match=r"broke off|floods us") as failed:
        await open_peer(rogue.url).read("gray", bearer)
    assert failed.value.sent is True


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_a_refusal_and_carries_nothing_on(
    status: int, rogue: Rogue, elsewhere: Rogue, open_peer: OpenPeer, bearer: peers.Credentials
) -> None:
    rogue.say(SERVICE, b"", status, headers={"location": f"{elsewhere.url}{SERVICE}"})
    with pytest.raises(peers.PeerRefused, match="do not follow") as refused:
        await open_peer(rogue.url).read("gray", bearer)
    assert refused.value.status == status
    assert elsewhere.got == []


async def test_a_proxy_of_the_environment_sees_nothing(
    rogue: Rogue, elsewhere: Rogue, open_peer: OpenPeer, bearer: peers.Credentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, elsewhere.url)
    rogue.say(SERVICE, {"name": "gray"})
    assert await open_peer(rogue.url).read("gray", bearer) == {"name": "gray"}
    assert elsewhere.got == []


async def test_no_cookie_comes_back(rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials) -> None:
    """One user's session must not be another's."""
    rogue.say(SERVICE, {"name": "gray"}, headers={"set-cookie": "session=alice; Path=/"})
    peer = open_peer(rogue.url)
    for _ in range(2):
        await peer.read("gray", bearer)
    assert all("cookie" not in request.headers for request in rogue.got)


async def test_a_compressed_answer_is_not_unfolded(
    rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials
) -> None:
    rogue.say(SERVICE, b"\x1f\x8b", headers={"content-encoding": "gzip"})
    with pytest.raises(peers.PeerRefused, match="encoding"):
        await open_peer(rogue.url).read("gray", bearer)
    assert rogue.got[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("status", "kind", "body", "answered"),
    [
        (502, "text/html", b"<html>nginx</html>", False),
        (503, "text/plain; charset=utf-8", b"Service Unavailable", False),
        (503, "text/plain", b"no healthy upstream", False),
        (503, "", b"", False),
        (504, "application/json", b'{"error":"x"}', False),
        (503, "text/plain; charset=utf-8", b"the queue is full (try later)", True),
        (503, "application/problem+json", b'{"type":"/problems/queue.full","detail":"full"}', True),
        (502, "text/plain; charset=utf-8", b"could not parse the token", True),
        (500, "text/plain", b"", True),
        (401, "", b"", True),
        (404, "text/html", b"<html>no such site</html>", True),
        (404, "text/plain; charset=utf-8", b"404 page not found", True),
    ],
)
async def test_a_gateway_is_not_the_manager(
    status: int, kind: str, body: bytes, answered: bool, rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials
) -> None:
    rogue.say(SERVICE, body, status, kind)
    with pytest.raises(peers.PeerRefused if answered else peers.PeerUnreachable):
        await open_peer(rogue.url).read("gray", bearer)


async def test_errors_hold_no_credential(rogue: Rogue, open_peer: OpenPeer) -> None:
    rogue.say(SERVICE, f"token {TOKEN} is not good".encode(), 401, "text/plain")
    shown = peers.Credentials(f"Bearer {TOKEN}")
    with pytest.raises(peers.PeerRefused, match="is not good") as refused:
        await open_peer(rogue.url).read("gray", shown)
    assert TOKEN not in f"{refused.value!r} {refused.value.facts} {refused.value.hint} {shown!r}"


@pytest.mark.parametrize("odd", ["Bearer a\r\nX-Evil: 1", "Bearer a\nb", "Bearer ü", "Bearer \0"])
async def test_credentials_cannot_smuggle_headers(odd: str, rogue: Rogue, open_peer: OpenPeer) -> None:
    with pytest.raises(peers.PeerRefused, match="cannot be sent"):
        await open_peer(rogue.url).read("gray", peers.Credentials(odd))
    assert rogue.got == []


async def test_a_certificate_nobody_vouches_for(open_peer: OpenPeer, bearer: peers.Credentials, tmp_path: Path) -> None:
    async with rogue_server(self_signed(tmp_path)) as secure:
        secure.say(SERVICE, {"name": "gray"})
        with pytest.raises(peers.PeerUnreachable, match="certificate") as failed:
            await open_peer(secure.url).read("gray", bearer)
        assert failed.value.sent is False
        assert secure.got == []
        assert await open_peer(secure.url, verify=False).read("gray", bearer) == {"name": "gray"}


async def test_a_broken_tls_record_leaves_the_fate_unknown(
    open_peer: OpenPeer, bearer: peers.Credentials, tmp_path: Path
) -> None:
    async with rogue_server(self_signed(tmp_path)) as secure:
        secure.spoil(SERVICE)
        with pytest.raises(peers.PeerUnreachable, match="broke off") as failed:
            await open_peer(secure.url, verify=False).read("gray", bearer)
        assert failed.value.sent is True


@pytest.mark.parametrize("first", ["chunks", "interim answers"])
async def test_one_that_floods_is_left_alone_for_a_while(
    first: str, rogue: Rogue, elsewhere: Rogue, bearer: peers.Credentials
) -> None:
    rogue.tiny(STATUS) if first == "chunks" else rogue.interim(STATUS)
    elsewhere.say(STATUS, EMPTY)
    known = {"visby": KnownCluster(endpoint=rogue.url), "riga": KnownCluster(endpoint=elsewhere.url)}
    found = OscarPeers(FederationSettings(clusters=known), limits=Limits(call_timeout=60))
    with pytest.raises(peers.PeerUnreachable, match="floods us") as failed:
        await found.find("visby").status(bearer, 60)
    assert failed.value.sent is True
    with pytest.raises(peers.PeerUnreachable, match="left alone") as failed:
        await found.find("visby").read("gray", bearer)
    assert failed.value.sent is False
    assert rogue.paths() == [STATUS]
    await found.find("riga").status(bearer, 60)
    await found.close()


async def test_one_that_flooded_is_asked_again_later(
    rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials
) -> None:
    rogue.tiny(STATUS)
    rogue.say(SERVICE, {"name": "gray"})
    peer = open_peer(rogue.url, limits=Limits(call_timeout=60, rest=0.0))
    with pytest.raises(peers.PeerUnreachable, match="floods us"):
        await peer.status(bearer, 60)
    assert await peer.read("gray", bearer) == {"name": "gray"}


async def test_a_program_that_floods_costs_its_cluster_nothing(
    rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials
) -> None:
    """OSCAR's own manager passes on what a function says."""
    rogue.tiny("/run/gray")
    rogue.say(SERVICE, {"name": "gray"})
    peer = open_peer(rogue.url, 60)
    job = peers.Handover("gray", "job-1", b"{}", "gray", "lubeck", ("lubeck",), "")
    with pytest.raises(peers.PeerUnreachable, match="floods us"):
        await peer.run(job, bearer, 60)
    assert await peer.read("gray", bearer) == {"name": "gray"}


async def test_answers_of_one_peer_leave_room_for_those_of_others(
    rogue: Rogue, elsewhere: Rogue, bearer: peers.Credentials
) -> None:
    most, size = 13 * 2**20, 4 * 2**20
    rests = [rogue.halt(f"/run/{name}", size) for name in ("one", "two")]
    for server in (rogue, elsewhere):
        server.say("/run/three", b"x" * size, kind="text/plain")
    known = {"visby": KnownCluster(endpoint=rogue.url), "riga": KnownCluster(endpoint=elsewhere.url)}
    found = OscarPeers(FederationSettings(clusters=known), limits=Limits(call_timeout=60, answers=most))

    def run(cluster: str, service: str) -> asyncio.Task[tuple[bytes, bool]]:
        job = peers.Handover(service, "job-1", b"{}", service, "lubeck", ("lubeck",), "")
        return asyncio.create_task(found.find(cluster).run(job, bearer, 60), name=f"{service} at {cluster}")

    async with asyncio.timeout(60):
        held = [run("visby", name) for name in ("one", "two")]
        while found._line._under_way.size < 2 * (size - 2**20):
            await asyncio.sleep(0.01)
        with pytest.raises(peers.PeerUnreachable, match="too many long answers"):
            await run("visby", "three")
        assert (await run("riga", "three"))[0] == b"x" * size
        for rest in rests:
            rest.set()
        assert [len(body) for body, _ in await asyncio.gather(*held)] == [size + 1, size + 1]
        assert (await run("visby", "three"))[0] == b"x" * size
    await found.close()
