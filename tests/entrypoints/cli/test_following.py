"""Following a job prints each part of its log once and ends when the job does."""

import pytest

from entrypoints.cli.small_server import SmallServer
from hansa.entrypoints.cli import following
from hansa.entrypoints.cli.client import Manager
from hansa.entrypoints.cli.screen import Screen
from hansa.kernel import errors


def test_the_log_is_shown_as_it_grows(server: SmallServer) -> None:
    for status in ("Pending", "Running", "Running", "Succeeded"):
        server.on("GET /system/logs/s", {"jobs": {"s-1": {"status": status}}})
    for log in (b"one\n", b"one\ntwo\n", b"one\ntwo\nthree\n"):
        server.on("GET /system/logs/s/s-1", log)
    shown: list[bytes] = []
    with Manager(server.url) as manager:
        job = following.follow(manager, "s", "s-1", Screen(), show=shown.append, timeout=30, interval=0)
    assert job.status == "Succeeded"
    assert shown == [b"one\n", b"two\n", b"three\n"]


def test_a_job_without_a_log_yet(server: SmallServer) -> None:
    server.on("GET /system/logs/s", {"jobs": {"s-1": {"status": "Running"}}})
    server.on("GET /system/logs/s", {"jobs": {"s-1": {"status": "Failed"}}})
    shown: list[bytes] = []
    with Manager(server.url) as manager:
        job = following.follow(manager, "s", "s-1", Screen(), show=shown.append, timeout=30, interval=0)
    assert (job.status, shown) == ("Failed", [])


def test_patience_ends(server: SmallServer) -> None:
    server.on("GET /system/logs/s", {"jobs": {"s-1": {"status": "Pending"}}})
    with Manager(server.url) as manager, pytest.raises(errors.Temporary, match="has not ended") as caught:
        following.follow(manager, "s", "s-1", Screen(), show=print, timeout=0, interval=1)
    assert "hansa job logs s s-1 -f" in caught.value.hint


def test_the_newest_job_comes_first() -> None:
    jobs = {
        "old": {"status": "Succeeded", "creation_time": "2026-01-01T00:00:00Z"},
        "waiting": {"status": "Suspended"},
        "new": {"status": "Running", "creation_time": "2026-01-02T00:00:00Z"},
    }
    assert [job.name for job in following.newest_first(jobs)] == ["waiting", "new", "old"]


def test_a_log_whose_beginning_was_cut_is_shown_again() -> None:
    assert following.fresh_part(b"a\nb\n", b"a\nb\nc\n") == b"c\n"
    assert following.fresh_part(b"a\nb\n", b"b\nc\n") == b"b\nc\n"
