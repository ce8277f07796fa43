"""Signing in stores what works, and only that."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from entrypoints.cli.small_server import Hansa, SmallServer
from hansa.entrypoints.cli import profile_files, profiles
from real.hub import ADMIN, Hub

PROGRAM = [sys.executable, "-c", "from hansa.entrypoints.cli import main; main()"]


def test_login_use_and_logout(server: SmallServer, hansa: Hansa) -> None:
    server.on("GET /system/info", {"version": "4.1", "serverless_backend": {"name": "Knative", "version": "1"}})
    assert hansa("login", server.url, "--name", "lubeck", "--token", "jwt-one").code == 0
    ran = hansa("login", server.url + "/", "--name", "visby", "--token", "jwt-two", "--json")
    assert ran.json() == {"cluster": "visby", "url": server.url, "role": "manager", "sign_in": "token"}
    listed = hansa("profile", "ls", "--json")
    assert [(row["name"], row["current"]) for row in listed.json()] == [("lubeck", False), ("visby", True)]
    assert "jwt" not in listed.out + hansa("profile", "ls").out
    assert hansa("profile", "use", "lubeck").code == 0
    assert hansa("version", "--json").json()["cluster"]["version"] == "4.1"
    assert server.seen[-1].headers["authorization"] == "Bearer jwt-one"
    assert hansa("logout").out == "forgot lubeck\n"
    assert hansa("profile", "rm", "riga").code == 4
    ran = hansa("service", "ls")
    assert ran.code == 3
    assert (
        ran.err == "error: no cluster is chosen (known: visby)\nhint: choose one: hansa profile use NAME, or -c NAME\n"
    )
    assert hansa("logout", "visby").code == 0
    assert hansa("service", "ls").err.splitlines()[-1].startswith("hint: sign in with: hansa login")


def test_credentials_that_fail_are_not_stored(server: SmallServer, hansa: Hansa) -> None:
    server.on("GET /system/info", b"", status=401)
    ran = hansa("login", server.url, "--token", "wrong")
    assert ran.code == 3
    assert "does not accept these credentials" in ran.err
    assert ran.err.splitlines()[-1] == "hint: check the user and the password, or the token"
    assert profiles.load(profile_files.own(os.environ)).known == {}
    assert hansa("login", server.url, "--token", "later", "--no-check").code == 0


def test_a_token_that_is_refused_for_a_reason(server: SmallServer, hansa: Hansa) -> None:
    problem = {"detail": "it is no access token", "hint": "send the access_token, not the id_token", "status": 401}
    server.on("GET /system/info", problem, status=401)
    assert hansa("login", server.url, "--token", "jwt").err.splitlines()[-1] == f"hint: {problem['hint']}"


def test_a_hub_that_was_taken_for_a_cluster(real_hub: Hub, hansa: Hansa, monkeypatch: pytest.MonkeyPatch) -> None:
    for password in (real_hub.password, "wrong"):
        monkeypatch.setenv("HANSA_PASSWORD", password)
        ran = hansa("login", real_hub.url, "--user", ADMIN)
        assert ran.code == 1
        assert ran.err == f"error: {real_hub.url} is a hub\nhint: add --hub\n"


def test_a_cluster_that_was_taken_for_a_hub(server: SmallServer, hansa: Hansa) -> None:
    server.on("GET /system/info", {"version": "4.1"})
    ran = hansa("login", server.url, "--hub", "--token", "t")
    assert ran.code == 1
    assert ran.err == f"error: {server.url} is a cluster's manager\nhint: leave out --hub\n"


def test_something_else(server: SmallServer, hansa: Hansa) -> None:
    assert hansa("login", server.url, "--token", "t").code == 4
    assert hansa("login", server.url, "--token", "t", "--hub").code != 0


def test_a_password_comes_from_stdin(server: SmallServer) -> None:
    server.on("GET /system/info", {"version": "4.1"})
    command = [*PROGRAM, "login", server.url, "-c", "lubeck", "--user", "oscar", "--password-stdin"]
    done = subprocess.run(command, input="hush hush\n", capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "hush" not in done.stdout + done.stderr
    assert profiles.load(profile_files.own(os.environ)).known["lubeck"].password == "hush hush"
    assert server.seen[-1].headers["authorization"].startswith("Basic ")


def test_without_a_terminal_nobody_is_asked(server: SmallServer) -> None:
    done = subprocess.run(
        [*PROGRAM, "login", server.url],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: User: not on a terminal, so nobody can be asked; give --user or --token\n")
    assert server.seen == []


def test_plain_http_to_another_machine_warns(hansa: Hansa) -> None:
    ran = hansa("login", "http://oscar.example", "--token", "t", "--no-check")
    assert "warning: http://oscar.example is not https" in ran.err
    assert hansa("login", "https://u:p@oscar.example").code == 1


def test_a_cluster_is_reached_elsewhere_under_its_own_name(server: SmallServer, hansa: Hansa, tmp_path: Path) -> None:
    port = server.url.rpartition(":")[2]
    name = f"hansa.lubeck.invalid:{port}"
    address = f"http://{name}"
    server.on("GET /system/info", {"version": "4.1"})
    server.on("POST /system/buckets/in/presign", {"url": f"{address}/in/a?signed=yes", "method": "GET"})
    server.on("GET /in/a", b"ahoy")
    ran = hansa("login", address, "-c", "lubeck", "--token", "jwt", "--connect-to", "127.0.0.1")
    assert (ran.code, ran.out, ran.err) == (0, f"signed in to lubeck ({address}), token\n", "")
    assert hansa("bucket", "get", "in/a", str(tmp_path / "a")).code == 0
    assert (tmp_path / "a").read_bytes() == b"ahoy"
    assert [seen.headers["host"] for seen in server.seen] == [name, name, name]
    # A store with an address of its own is where that says: nowhere, in this case.
    server.on("POST /system/buckets/out/presign", {"url": f"http://s3.invalid:{port}/out/a", "method": "GET"})
    assert hansa("bucket", "get", "out/a", str(tmp_path / "b")).code == 6
    assert hansa("login", address, "--hub", "--connect-to", "127.0.0.1").code == 2


def test_a_refresh_token_needs_its_issuer(hansa: Hansa) -> None:
    ran = hansa("login", "https://oscar.example", "--refresh-token", "r")
    assert ran.code == 2
    assert "--issuer" in ran.err
