"""Are job listings read in both shapes, page by page, and never without end?"""

from typing import Any

import pytest

from drivers.oscar.conftest import OpenPeer
from drivers.oscar.rogue import Rogue
from hansa.drivers.oscar import Limits
from hansa.services import peers

LOGS = "/system/logs/gray"


def job(status: str, seconds: int = 0) -> dict[str, Any]:
    times = {"creation_time": "2026-01-02T03:04:00Z", "start_time": "2026-01-02T03:04:05Z"}
    return {"status": status, **times, "finish_time": f"2026-01-02T03:04:{5 + seconds:02}Z"}


async def test_all_pages_count(rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials) -> None:
    rogue.say(LOGS, {"jobs": {"a": job("Succeeded", 10), "b": job("Failed", 40)}, "next_page": "a/b c", "remaining": 3})
    rogue.say(
        f"{LOGS}?page=a%2Fb+c", {"jobs": {"c": job("Succeeded", 20), "d": {"status": "Pending"}}, "next_page": "z"}
    )
    rogue.say(f"{LOGS}?page=z", {"jobs": {"e": {"status": "Suspended"}, "f": {"status": "Running"}}})
    assert await open_peer(rogue.url).history("gray", bearer, 5) == peers.PeerHistory(15.0, 2)


async def test_the_old_shape_is_a_bare_map(rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials) -> None:
    rogue.say(LOGS, {"a": job("Succeeded", 7), "b": {"status": "Pending"}})
    assert await open_peer(rogue.url).history("gray", bearer, 5) == peers.PeerHistory(7.0, 1)


@pytest.mark.parametrize("empty", [{}, {"jobs": {}}, {"jobs": None}, {"jobs": [1, 2]}, {"jobs": {"a": "b", "c": None}}])
async def test_nothing_to_tell(empty: Any, rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials) -> None:
    rogue.say(LOGS, empty)
    assert await open_peer(rogue.url).history("gray", bearer, 5) == peers.PeerHistory(None, 0)


@pytest.mark.parametrize("status", [["Pending"], {"Pending": 1}, 5, None, True])
async def test_states_that_cannot_be_do_not_count(
    status: Any, rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials
) -> None:
    rogue.say(LOGS, {"jobs": {"a": {"status": status}, "b": {"status": "Pending"}}})
    assert await open_peer(rogue.url).history("gray", bearer, 5) == peers.PeerHistory(None, 1)


@pytest.mark.parametrize("finish", ["2020-01-01T00:00:00Z", "soon", "", None, 5, "9" * 1000])
async def test_times_that_cannot_be_do_not_count(
    finish: Any, rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials
) -> None:
    rogue.say(LOGS, {"jobs": {"a": {**job("Succeeded"), "finish_time": finish}}})
    assert await open_peer(rogue.url).history("gray", bearer, 5) == peers.PeerHistory(None, 0)


async def test_going_round_in_circles_ends(rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials) -> None:
    rogue.say(LOGS, {"jobs": {"a": {"status": "Pending"}}, "next_page": "again"})
    assert await open_peer(rogue.url).history("gray", bearer, 5) == peers.PeerHistory(None, 2)


async def test_endless_pages_end(rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials) -> None:
    rogue.say(LOGS, {"jobs": {"a": {"status": "Pending"}}, "next_page": "0"})
    for number in range(20):
        page = {"jobs": {"a": {"status": "Pending"}}, "next_page": str(number + 1)}
        rogue.say(f"{LOGS}?page={number}", page)
    assert (await open_peer(rogue.url, limits=Limits(pages=5)).history("gray", bearer, 5)).pending == 5
    assert len(rogue.got) == 5


async def test_what_was_read_in_time_counts(rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials) -> None:
    rogue.say(LOGS, {"jobs": {"a": {"status": "Pending"}}, "next_page": "slow"})
    rogue.hang(f"{LOGS}?page=slow")
    assert (await open_peer(rogue.url).history("gray", bearer, 0.4)).pending == 1
    rogue.hang(LOGS)
    with pytest.raises(peers.PeerUnreachable):
        await open_peer(rogue.url).history("gray", bearer, 0.2)


async def test_an_empty_answer_is_a_refusal(rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials) -> None:
    rogue.say(LOGS, b"")
    with pytest.raises(peers.PeerRefused, match="may not see"):
        await open_peer(rogue.url).history("gray", bearer, 5)
