"""The live view reads well in any size, and as plain lines; the status says what is wrong."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from client.streams import LATER, SNAPSHOT, streams
from entrypoints.cli.small_server import Hansa, SmallServer
from hansa.client import Picture
from hansa.entrypoints.cli import live_view
from hansa.messages.clusters import State
from hansa.messages.inventory import Change, ClusterInventory, Inventory
from hansa.messages.members import Totals

STATES: tuple[State, ...] = ("ready", "degraded", "unreachable", "draining", "pending", "ready", "left")
INVENTORY = {
    "at": 1, "age": 0, "regions": {}, "total": {},
    "clusters": [{"id": "lubeck", "kind": "hansa", "state": "ready", "region": "eu", "zone": "", "seen": 1.0,
                  "totals": {"nodes": 2, "nodes_ready": 2, "cpu": 4000, "cpu_used": 1000}}],
}  # fmt: skip


def picture() -> Picture:
    clusters = tuple(
        ClusterInventory(
            id=f"c{number}", kind="hansa", state=state, region="eu\x1b[31m", zone="", seen=100.0,
            totals=Totals(nodes=1, nodes_ready=1, cpu=4000, cpu_used=1000 * number, memory=2**34, gpu=number),
        )
        for number, state in enumerate(STATES)
    )  # fmt: skip
    found = Picture()
    found.apply(Inventory(at=1, age=0, clusters=clusters, regions={}, total=Totals()))
    found.apply(Change(id=1, at=1_790_000_000, cluster="c2", kind="state", detail="it is silent"))
    return found


@pytest.mark.parametrize(("width", "height"), [(200, 40), (80, 24), (40, 12), (20, 5)])
def test_it_fits(width: int, height: int) -> None:
    console = Console(width=width, height=height, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(live_view.drawn(picture(), hub="http://hub", now=101.0, height=height))
    said = capture.get()
    assert "\x1b[31m" not in said  # a name must not speak to the terminal
    assert max(map(len, said.splitlines())) <= width
    if width == 200:
        lines = said.splitlines()
        assert "7 clusters: 1 unreachable, 1 degraded, 1 draining, 1 pending, 2 ready, 1 left" in lines[0]
        assert [line.split()[0] for line in lines[4:11]] == ["c2", "c1", "c3", "c4", "c0", "c5", "c6"]
        assert lines[-1].endswith("c2  state: it is silent")
    if height == 12:
        assert "… and 2 more" in said


def test_bars_say_the_share() -> None:
    assert live_view.bar(1, 2) == "████░░░░  50%"
    assert live_view.bar(9, 2) == "████████ 100%"
    assert live_view.bar(1, 0) == "░░░░░░░░   0%"


def test_once(server: SmallServer, hansa: Hansa) -> None:
    server.on("GET /v1/inventory", INVENTORY)
    ran = hansa("top", "--once", "--hub", server.url, "-l", "region=eu")
    assert ran.out.splitlines()[1].startswith("CLUSTER  STATE")
    assert "██░░░░░░  25%" in ran.out
    assert server.seen[0].query == {"selector": "region=eu"}
    assert hansa("top", "--once", "--hub", server.url, "--json").json()["clusters"][0]["id"] == "lubeck"


def test_lines_where_there_is_no_terminal(hansa: Hansa) -> None:
    with streams(SNAPSHOT, LATER) as (url, _):
        ran = hansa("top", "--hub", url)
    assert ran.code == 6  # the hub went away for good
    lines = ran.out.splitlines()
    assert lines[1].startswith("CLUSTER")
    assert lines[3:5] == ["lubeck  ready  nodes   cpu ░░░░░░░░   0%  memory ", "lubeck  is gone"]
    assert lines[5].endswith("lubeck  state: why")
    with streams(SNAPSHOT, LATER) as (url, _):
        ran = hansa("top", "--hub", url, "--json")
    assert [line[:24] for line in ran.out.splitlines()] == [
        '{"event": "snapshot", "d', '{"event": "cluster", "da', '{"event": "removed", "da', '{"event": "change", "dat',
    ]  # fmt: skip


def heard(fd: int, *texts: bytes, seconds: float = 30.0) -> bytes:
    """What the program wrote until all of this was in it, or until its end."""
    said, end = b"", time.monotonic() + seconds
    while time.monotonic() < end and not (texts and all(text in said for text in texts)):
        if select.select([fd], [], [], 0.5)[0]:
            try:
                said += os.read(fd, 65536)
            except OSError:  # the other end is closed
                break
    assert [text for text in texts if text not in said] == []
    return said


def test_a_moving_picture_on_a_terminal(server: SmallServer, tmp_path: Path) -> None:
    """It shows what it knows when the hub goes away, and ends with Ctrl-C as it should."""
    ours, theirs = pty.openpty()
    with streams(SNAPSHOT) as (url, _):
        program = [sys.executable, "-c", "from hansa.entrypoints.cli import main; main()", "top", "--hub", url]
        env = {**os.environ, "TERM": "xterm", "COLUMNS": "150", "LINES": "30"}
        process = subprocess.Popen(program, stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=tmp_path)
        os.close(theirs)
        try:
            heard(ours, b"lubeck", b"from before")
            process.send_signal(signal.SIGINT)
            assert b"error" not in heard(ours)
            assert process.wait(20) == 0
        finally:
            process.kill()
            process.wait(10)
            os.close(ours)


def test_federation_status(server: SmallServer, hansa: Hansa) -> None:
    server.on(
        "GET /v1/federation/status",
        {
            "at": 1_790_000_300, "age": 0, "score": 72.5, "clusters": 3, "by_state": {"ready": 2, "unreachable": 1},
            "reasons": [{"points": 27.5, "reason": "visby is unreachable"}],
            "degraded": [{"cluster": "visby", "state": "unreachable", "since": 1_790_000_000, "reason": "silent"}],
            "recent": [{"id": 1, "at": 1_790_000_000, "cluster": "visby", "kind": "state", "detail": "it is silent"}],
            "total": {"nodes": 2, "nodes_ready": 2, "cpu": 8000}, "hubs": ["h1"],
        },
    )  # fmt: skip
    ran = hansa("federation-status", "--hub", server.url)
    for text in ("72.5 of 100", "3: 2 ready, 1 unreachable", "-27.5   visby is unreachable", "5 min", "0 of 8"):
        assert text in ran.out
    assert hansa("federation-status", "--hub", server.url, "--json").json()["score"] == 72.5
