"""`make run`: three real clusters and a hub that start together, are kept alive, and never outlive their playground."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from hansa.entrypoints.playground import environment, plan
from hansa.settings import BadSetting
from real.playground import Playground, eventually, playground

CLUSTERS = ["lubeck", "visby", "riga"]


def is_open(url: str) -> bool:
    parts = urlsplit(url)
    with socket.socket() as probe:
        return probe.connect_ex((parts.hostname or "", parts.port or 0)) == 0


def assert_nothing_left(started: Playground, urls: list[str], seconds: float = 2.0) -> None:
    eventually(lambda: not started.processes(), seconds, started.processes)
    assert [url for url in urls if is_open(url)] == []


def hansa(at: Playground, *words: str) -> str:
    command = [sys.executable, "-m", "hansa", *words]
    done = subprocess.run(command, cwd=at.folder, env=at.env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def federation(at: Playground) -> dict[str, Any]:
    """The clusters as the hub knows them."""
    return {one["id"]: one for one in json.loads(hansa(at, "cluster", "ls", "--json"))["clusters"]}


def heard_lately(cluster: dict[str, Any]) -> bool:
    return bool(cluster["state"] == "ready" and cluster["seen"] > time.time() - 6)


@pytest.mark.slow
def test_from_start_to_stop(tmp_path: Path) -> None:
    with playground(tmp_path, {"HANSA_JOBS__PAGE_SIZE": "7"}) as started:
        info = started.info()
        clusters = info["clusters"]
        assert list(info) == ["clusters", "hub"]
        assert set(info["hub"]) == {"url", "admin_user", "admin_password"}
        assert [cluster["id"] for cluster in clusters] == CLUSTERS
        assert {frozenset(cluster) for cluster in clusters} == {
            frozenset({"id", "url", "admin_user", "admin_password", "s3_url"})
        }
        assert len({cluster["admin_password"] for cluster in clusters}) == 3
        assert stat.S_IMODE((started.notes / "info.json").stat().st_mode) == 0o600
        for cluster in clusters:
            assert httpx.get(f"{cluster['url']}/ready", trust_env=False).status_code == 200
            assert is_open(cluster["s3_url"])

        assert clusters[1]["url"] in hansa(started, "status", "-c", "visby")
        assert {name: one["state"] for name, one in federation(started).items()} == dict.fromkeys(CLUSTERS, "ready")

        second = Playground(tmp_path, {})
        assert second.wait() == 1
        assert "already" in second.said

        before = started.servers()
        assert sorted(before) == sorted([*CLUSTERS, "hub"])
        os.kill(before["visby"], signal.SIGKILL)
        os.kill(before["hub"], signal.SIGKILL)
        started.wait_for("visby: the manager ended with signal 9")
        started.wait_for("hub: the hub ended with signal 9")
        started.wait_for("visby: ready again")
        started.wait_for("hub: ready again")
        assert httpx.get(f"{clusters[1]['url']}/ready", trust_env=False).status_code == 200
        after = started.servers()
        assert after["visby"] != before["visby"]
        assert after["hub"] != before["hub"]
        eventually(lambda: all(heard_lately(one) for one in federation(started).values()), 30, started.servers)
        assert {name: after[name] for name in ("lubeck", "riga")} == {name: before[name] for name in ("lubeck", "riga")}

        assert started.end() == 0
        assert_nothing_left(started, [info["hub"]["url"], *(one[key] for one in clusters for key in ("url", "s3_url"))])
        assert not (started.notes / "info.json").exists()
        assert not (started.notes / "clusters.toml").exists()


@pytest.mark.slow
@pytest.mark.deep
def test_killed_it_takes_everything_along_and_starts_again_as_it_was(tmp_path: Path) -> None:
    with playground(tmp_path) as killed:
        first = killed.info()
        joined = {name: one["joined"] for name, one in federation(killed).items()}
        killed.end(signal.SIGKILL)
        with playground(tmp_path) as started:  # at once: it waits for the old managers to end
            urls = ("id", "url", "admin_password")
            again = started.info()
            assert [[one[key] for key in urls] for one in again["clusters"]] == [
                [one[key] for key in urls] for one in first["clusters"]
            ]
            assert again["hub"] == first["hub"]
            assert {name: one["joined"] for name, one in federation(started).items()} == joined
            started.process.kill()
            started.wait()
            addresses = [cluster[key] for cluster in again["clusters"] for key in ("url", "s3_url")]
            assert_nothing_left(started, addresses, seconds=30)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "begun"), [(signal.SIGHUP, "-m hansa server"), (signal.SIGINT, "/weed ")])
def test_stopped_while_it_starts(tmp_path: Path, number: signal.Signals, begun: str) -> None:
    with playground(tmp_path) as started:
        eventually(lambda: any(begun in each for each in started.processes().values()), 60, started.processes)
        assert started.end(number) == 0
        assert_nothing_left(started, [])
        assert not (started.notes / "info.json").exists()


@pytest.mark.slow
@pytest.mark.deep
def test_a_manager_that_does_not_start_is_explained(tmp_path: Path) -> None:
    key = tmp_path / ".playground" / "riga" / "vault.key"
    key.parent.mkdir(parents=True)
    key.write_text("no key")
    key.chmod(0o600)
    with playground(tmp_path) as started:
        assert started.wait() == 1
        assert "a vault key is missing" in started.said
        assert "while it started" in started.said
        assert started.said.splitlines()[-1].startswith("hint: its whole log is .playground/")
        assert_nothing_left(started, [])


def test_a_wrong_setting_is_told_in_a_line_before_anything_starts(tmp_path: Path) -> None:
    with playground(tmp_path, {"HANSA_JOBS__PAGESIZE": "7"}) as started:
        assert started.wait() == 1
        assert started.said.splitlines() == [
            "error: HANSA_JOBS__PAGESIZE is not a setting",
            "hint: did you mean HANSA_JOBS__PAGE_SIZE?",
        ]
        assert not started.notes.exists()


def test_places_are_remembered_and_kept_apart(tmp_path: Path) -> None:
    with ExitStack() as claims:
        first = plan.places(tmp_path, claims)
        with ExitStack() as others:
            elsewhere = plan.places(tmp_path.parent / f"{tmp_path.name}-other", others)
    assert len({place.port for place in (*first, *elsewhere)}) == 6
    uids = sorted(place.uid_base for place in (*first, *elsewhere))
    assert min(later - sooner for sooner, later in pairwise(uids)) >= 256
    with ExitStack() as claims:
        assert plan.places(tmp_path, claims) == first
    with ExitStack() as claims, socket.create_server(("127.0.0.1", first[1].port)):
        again = plan.places(tmp_path, claims)
    with ExitStack() as claims:
        hub = plan.hub_place(tmp_path, claims)
        assert len({hub.port, hub.members_port, *(place.port for place in plan.places(tmp_path, claims))}) == 5
    with ExitStack() as claims:
        assert plan.hub_place(tmp_path, claims) == hub
    assert [place.uid_base for place in again] == [place.uid_base for place in first]
    assert again[0].port == first[0].port
    assert again[1].port not in {place.port for place in first}


def test_what_a_manager_gets(tmp_path: Path) -> None:
    place = plan.Place("riga", tmp_path, 8199, 1_950_000_000)
    given = {"PATH": "/bin", "HANSA_HTTP__PORT": "1", "HANSA_ADMIN__PASSWORD": "x", "HANSA_JOBS__ATTEMPTS": "5"}
    assert environment.left_out(given) == ["HANSA_ADMIN__PASSWORD", "HANSA_HTTP__PORT"]
    visby = plan.Place("visby", tmp_path, 8198, 1_950_000_256)
    own = environment.for_place(place, [visby, place], given)
    settings = environment.checked(own)
    assert (settings.cluster.id, settings.http.port, settings.sandbox.uid_base) == ("riga", 8199, 1_950_000_000)
    assert (settings.jobs.attempts, settings.data, own["PATH"]) == (5, tmp_path, "/bin")
    assert {id: peer.endpoint for id, peer in settings.federation.clusters.items()} == {
        "visby": "http://127.0.0.1:8198"
    }
    assert settings.admin.password.get_secret_value() == ""
    assert (settings.role, settings.membership.name, settings.membership.region) == ("manager", "Riga", "baltic-east")
    assert (
        environment.checked(environment.for_place(place, [], {"HANSA_MEMBERSHIP__REGION": "eu"})).membership.region
        == "eu"
    )
    hub = environment.checked(environment.for_hub(plan.HubPlace(tmp_path / "hub", 8100, 8443), given))
    assert (hub.role, hub.hub.port, hub.hub.members_port, hub.data) == ("hub", 8100, 8443, tmp_path / "hub")
    with pytest.raises(BadSetting, match="all three"):
        environment.checked({"HANSA_DATABASE__URL": "postgresql://here/one"})
