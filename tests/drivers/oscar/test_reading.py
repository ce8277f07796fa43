"""What does a definition, a status or a page cost us that was made to cost much?"""

import threading
from typing import Any

import pytest

from drivers.oscar.conftest import OpenPeer
from drivers.oscar.rogue import Rogue
from hansa.drivers.oscar import Limits
from hansa.drivers.oscar.calls import Answer, Question
from hansa.services import peers

GRAY = "/system/services/gray"
MANY = b"[" + b"[]," * 60_000  # its end is missing: whoever tries to read it says that it is no JSON


@pytest.mark.parametrize("part", [b'"input":' + MANY, b'"strange":{"inner":' + MANY, b'"name":' + b"[" * 2000])
async def test_a_definition_of_too_many_parts_is_refused_unread(
    part: bytes, rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials
) -> None:
    rogue.say(GRAY, b'{"annotations":{},' + part)
    with pytest.raises(peers.PeerRefused, match="parts"):
        await open_peer(rogue.url).read("gray", bearer)


async def test_a_status_and_a_page_of_too_many_parts_are_refused_unread(
    rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials
) -> None:
    peer = open_peer(rogue.url, limits=Limits(many_parts=100_000))
    rogue.say("/system/status", b'{"cluster":{"nodes":' + MANY)
    rogue.say("/system/logs/gray", b'{"jobs":{"a":' + MANY)
    with pytest.raises(peers.PeerRefused, match="parts"):
        await peer.status(bearer, 5)
    with pytest.raises(peers.PeerRefused, match="parts"):
        await peer.history("gray", bearer, 5)


async def test_a_definition_longer_than_any_manager_takes_is_refused(
    rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials
) -> None:
    rogue.flood(GRAY, 9 * 2**20)
    with pytest.raises(peers.PeerRefused, match="more than 8388608 bytes"):
        await open_peer(rogue.url).read("gray", bearer)


async def test_a_long_script_is_no_harm(rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials) -> None:
    script = '#!/bin/sh\necho "[[],{}]", \\\n' * 100_000
    rogue.say(GRAY, {"name": "gray", "script": script, "newer": [{"than": ["ours"]}]})
    found = await open_peer(rogue.url).read("gray", bearer)
    assert found == {"name": "gray", "script": script, "newer": [{"than": ["ours"]}]}


@pytest.mark.parametrize("lie", ["x", [], 5, True, {"oscar.grycap/federation-worker": {}}, {"a": None}, ["a"]])
async def test_annotations_are_texts(lie: Any, rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials) -> None:
    rogue.say(GRAY, {"name": "gray", "annotations": lie})
    with pytest.raises(peers.PeerRefused, match="annotations"):
        await open_peer(rogue.url).read("gray", bearer)


@pytest.mark.parametrize("definition", [{}, {"annotations": None}, {"annotations": {"a": "b"}}])
async def test_annotations_may_be_missing(
    definition: dict[str, Any], rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials
) -> None:
    rogue.say(GRAY, definition)
    assert await open_peer(rogue.url).read("gray", bearer) == definition


@pytest.mark.parametrize(("size", "apart"), [(100, False), (200_000, True)])
async def test_only_what_is_large_is_read_in_a_thread(size: int, apart: bool) -> None:
    asked = Question("cluster visby", "GET", "http://127.0.0.1/", True, 1.0, 10**6)
    where = await Answer(asked, 200, "", b" " * size).reading(lambda _: threading.current_thread())
    assert (where is not threading.current_thread()) is apart


@pytest.mark.parametrize("permit", [True, False])
async def test_a_log_that_is_longer_than_we_keep_is_cut(
    permit: bool, rogue: Rogue, open_peer: OpenPeer, bearer: peers.Credentials
) -> None:
    peer = open_peer(rogue.url, limits=Limits(log_answer=100_000))
    rogue.flood("/v1/delegations/job-1/log", 64 * 2**20)
    rogue.flood("/system/logs/gray/job-1", 64 * 2**20)
    if permit:
        found = await peer.away_log("job-1", "p", timestamps=True)
    else:
        found = await peer.listed_log("gray", "job-1", bearer)
    assert found == "x" * 100_000
