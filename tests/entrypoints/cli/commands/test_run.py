"""Runs send their input as OSCAR expects it and bring the answer, or the job, back."""

import base64
from pathlib import Path

import pytest

from entrypoints.cli.small_server import TOKEN, Hansa, SmallServer

SERVICE = {"name": "up", "token": TOKEN}


def test_a_synchronous_run_with_the_services_own_token(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("GET /system/services/up", SERVICE)
    admin.on("POST /run/up", base64.b64encode(b"HELLO WORLD\n"))
    ran = hansa("run", "up", "--text", "hello world")
    assert (ran.code, ran.out) == (0, "HELLO WORLD\n"), ran.err
    (sent,) = admin.calls("POST")
    assert base64.b64decode(sent.body) == b"hello world"
    assert sent.headers["authorization"] == f"Bearer {TOKEN}"
    assert "transfer-encoding" not in sent.headers
    assert TOKEN not in ran.err


def test_a_bearer_is_used_as_it_is(server: SmallServer, hansa: Hansa, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANSA_URL", server.url)
    monkeypatch.setenv("HANSA_TOKEN", "jwt")
    server.on("POST /run/up", b"plain answer")
    assert hansa("run", "up", "--json").json() == {"service": "up", "answer": "plain answer", "files": []}
    assert [seen.headers["authorization"] for seen in server.seen] == ["Bearer jwt"]


def test_the_answer_goes_into_a_file(admin: SmallServer, hansa: Hansa, tmp_path: Path) -> None:
    admin.on("GET /system/services/up", SERVICE).on("POST /run/up", base64.b64encode(bytes(1000)))
    (tmp_path / "in.bin").write_bytes(bytes(5000))
    ran = hansa("run", "up", "--file", "in.bin", "--output", "out.bin")
    assert ran.code == 0
    assert (tmp_path / "out.bin").read_bytes() == bytes(1000)
    assert base64.b64decode(admin.calls("POST")[0].body) == bytes(5000)


def test_a_cluster_that_runs_jobs_only(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("GET /system/services/up", SERVICE)
    ran = hansa("run", "up")
    assert ran.code == 4
    assert ran.err.splitlines()[-1] == "hint: the cluster may run jobs only: try --async"


def test_a_script_that_fails_is_no_unreachable_cluster(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("GET /system/services/up", SERVICE)
    admin.on("POST /run/up", b"no such file\n", status=502, X_Hansa_Exit_Code="3")
    ran = hansa("run", "up")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "no such file\nerror: the script of up ended with exit code 3\n"
    assert hansa("run", "up", "--json").json()["exit_code"] == "3"
    admin.on("GET /system/services/gone", SERVICE).on("POST /run/gone", b"<html>", status=502)
    assert hansa("run", "gone").code == 6


def test_why_a_script_failed(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("GET /system/services/up", SERVICE)
    why = "out of memory: used more than 64Mi"
    admin.on("POST /run/up", b"Killed\n", status=502, X_Hansa_Exit_Code="137", X_Hansa_Reason=why)
    assert hansa("run", "up").err == f"Killed\nerror: the script of up failed: {why}\n"


def test_a_service_that_is_not_there(server: SmallServer, hansa: Hansa, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANSA_URL", server.url)
    monkeypatch.setenv("HANSA_TOKEN", "jwt")
    ran = hansa("run", "gone")
    assert ran.code == 4
    assert ran.err.startswith("error: there is no service gone in ")
    assert "--async" not in ran.err


def test_a_job_named_by_the_manager(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("GET /system/services/up", SERVICE).on("POST /job/up", b"", status=201, X_Hansa_Job="up-7")
    assert hansa("run", "up", "--async").out == "up-7\n"


def test_a_job_found_by_listing(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("GET /system/services/up", SERVICE).on("POST /job/up", b"", status=201)
    old = {"up-1": {"status": "Succeeded", "creation_time": "2026-01-01T00:00:00Z"}}
    admin.on("GET /system/logs/up", {"jobs": old})
    admin.on("GET /system/logs/up", {"jobs": {**old, "up-2": {"status": "Pending"}}})
    assert hansa("run", "up", "--async", "--json").json() == {"service": "up", "job": "up-2"}


@pytest.mark.parametrize(("status", "code"), [("Succeeded", 0), ("Failed", 1)])
def test_waiting_prints_the_log_and_tells_how_it_ended(
    admin: SmallServer, hansa: Hansa, status: str, code: int
) -> None:
    admin.on("GET /system/services/up", SERVICE).on("POST /job/up", b"", status=201, X_Hansa_Job="up-7")
    admin.on("GET /system/logs/up", {"jobs": {"up-7": {"status": status}}})
    admin.on("GET /system/logs/up/up-7", b"working\n")
    ran = hansa("run", "up", "--async", "--wait")
    assert (ran.code, ran.out) == (code, "working\n")
    assert status in ran.err


def test_waiting_tells_why_it_takes_so_long(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("GET /system/services/up", SERVICE).on("POST /job/up", b"", status=201, X_Hansa_Job="up-7")
    admin.on("GET /system/logs/up", {"jobs": {"up-7": {"status": "Pending"}}})
    admin.on("GET /v1/jobs/up-7", {"name": "up-7", "service": "up", "reason": "your quota of 2 cpu is used up"})
    ran = hansa("run", "up", "--async", "--wait", "--timeout", "2")
    assert ran.code == 6
    assert "job up-7 waits: your quota of 2 cpu is used up" in ran.err
    assert "has not ended after 2 s (Pending: your quota of 2 cpu is used up)" in ran.err


def test_waiting_tells_why_it_failed(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("GET /system/services/up", SERVICE).on("POST /job/up", b"", status=201, X_Hansa_Job="up-7")
    admin.on("GET /system/logs/up", {"jobs": {"up-7": {"status": "Failed"}}})
    admin.on("GET /v1/jobs/up-7", {"name": "up-7", "service": "up", "reason": "it asks for more than the quota"})
    ran = hansa("run", "up", "--async", "--wait")
    assert "error: job up-7 ended as Failed: it asks for more than the quota" in ran.err


@pytest.mark.parametrize(
    "wrong", [("--text", "a", "--file", "b"), ("--wait",), ("--async", "--output", "x"), ("--timeout", "0")]
)
def test_usage(hansa: Hansa, wrong: tuple[str, ...]) -> None:
    ran = hansa("run", "up", *wrong)
    assert ran.code == 2
    assert ran.err.startswith("error: ")
    assert ran.err.splitlines()[-1].startswith("hint: see: hansa run --help")
