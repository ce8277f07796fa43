"""Does no figure of a peer get further than it can be true?"""

import time
from typing import Any

import pytest

from drivers.oscar.conftest import OpenPeer
from drivers.oscar.rogue import Rogue
from hansa.kernel import clock
from hansa.services import peers

AWAY = "/v1/delegations/job-1"
LOGS = "/system/logs/gray"
FAR = [1e300, -1e15, 1e11, 0, 10**400, 1.5, "2026", True, None, [1]]


@pytest.mark.parametrize("lie", FAR)
async def test_a_time_far_from_now_is_left_out(lie: Any, rogue: Rogue, open_peer: OpenPeer) -> None:
    rogue.say(AWAY, {"status": "Succeeded", "started": lie, "finished": lie, "exit_code": 0})
    assert await open_peer(rogue.url).away_job("job-1", "p") == peers.AwayJob("Succeeded", exit_code=0)


async def test_times_around_now_are_kept(rogue: Rogue, open_peer: OpenPeer) -> None:
    now = time.time()
    rogue.say(AWAY, {"status": "Succeeded", "started": now - 86400 * 30, "finished": int(now) + 3600})
    found = await open_peer(rogue.url).away_job("job-1", "p")
    assert found == peers.AwayJob("Succeeded", now - 86400 * 30, int(now) + 3600)


@pytest.mark.parametrize("lie", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z", "1970-01-01T00:00:00Z"])
async def test_a_listed_time_far_from_now_is_left_out(
    lie: str, rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials
) -> None:
    recently = clock.rfc3339(int(time.time()))
    rogue.say(LOGS, {"jobs": {"a": {"status": "Succeeded", "start_time": recently, "finish_time": lie}}})
    found = await open_peer(rogue.url).listed_job("gray", "a", bearer)
    assert found is not None
    assert found.started is not None
    assert (clock.rfc3339(found.started), found.finished) == (recently, None)


@pytest.mark.parametrize(
    ("told", "taken"),
    [(0, 0), (255, 255), (-1, -1), (2**63, 2**31 - 1), (-(2**80), -(2**31)), (3.5, None), (True, None), ("1", None)],
)
async def test_an_exit_code_fits_into_32_bits(told: Any, taken: int | None, rogue: Rogue, open_peer: OpenPeer) -> None:
    rogue.say(AWAY, {"status": "Failed", "exit_code": told})
    assert await open_peer(rogue.url).away_job("job-1", "p") == peers.AwayJob("Failed", exit_code=taken)


@pytest.mark.parametrize(("told", "taken"), [(1.7e308, 1e12), (-4, 0.0), (2.5, 2.5), ("many", 0.0), (10**400, 0.0)])
async def test_processor_time_can_be_added_up(told: Any, taken: float, rogue: Rogue, open_peer: OpenPeer) -> None:
    rogue.say(AWAY, {"status": "Failed", "cpu_seconds": told})
    assert await open_peer(rogue.url).away_job("job-1", "p") == peers.AwayJob("Failed", cpu_seconds=taken)


async def test_a_reason_has_no_control_characters(rogue: Rogue, open_peer: OpenPeer) -> None:
    rogue.say(AWAY, {"status": "Failed", "reason": "\x1b]0;owned\x07 two\nlines\t\x00\x9b"})
    found = await open_peer(rogue.url).away_job("job-1", "p")
    assert found is not None
    assert found.reason == "\ufffd]0;owned\ufffd two\nlines\t\ufffd\ufffd"


async def test_a_token_is_not_believed_to_be_good_for_ever(rogue: Rogue, open_peer: OpenPeer) -> None:
    rogue.say("/v1/services/gray/access-token", {"access_token": "abc", "expires_in": 1e300})
    _, expires = await open_peer(rogue.url).fresh_token("gray", "6b" * 32)
    assert expires < time.time() + 2 * 86400
