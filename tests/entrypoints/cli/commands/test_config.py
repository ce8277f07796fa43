"""`hansa config` and `hansa policy` at a real hub without clusters; rollouts are followed at a small server."""

from pathlib import Path
from typing import Any

import pytest

from entrypoints.cli.small_server import Hansa, SmallServer
from hansa.entrypoints.cli import trees
from hansa.kernel import errors

NOW = 1_790_000_000.0
ROLLOUT: dict[str, Any] = {
    "id": 1, "document": "limits", "version": 2, "former": 1, "state": "running", "stage": 1, "stages": 3,
    "reason": "1 of 3 have it", "since": NOW,
    "clusters": [{"cluster": "riga", "desired": 2, "applied": 1, "state": "failed", "error": "no such queue"}],
}  # fmt: skip


def test_alone_it_shows_a_cluster(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("GET /system/config", {"config": {"name": "lubeck"}, "minio_provider": {"secret_key": "hush"}})
    assert "name: lubeck" in hansa("config").out
    assert hansa("config", "--json").json()["minio_provider"]["secret_key"] == "********"
    assert "hush" in hansa("config", "--secrets").out


@pytest.mark.slow
def test_a_document_and_its_versions(at_hub: Hansa, tmp_path: Path) -> None:
    assert at_hub("config", "ls").code == 0
    file = tmp_path / "limits.toml"
    file.write_text('[jobs]\nrun_limit = 120\n[log]\nlevel = "debug"\n')
    ran = at_hub("config", "put", "limits", "-f", str(file), "--set", "jobs.keep=5000", "-l", "region=eu", "-m", "try")
    assert ran.code == 0, ran.err
    for text in ("jobs.run_limit", "jobs.keep", "region=eu", "try"):
        assert text in ran.out
    assert at_hub("config", "put", "limits", "--set", "jobs.run_limit=90", "--expected", "7").code == 5
    second = at_hub("config", "put", "limits", "--set", "jobs.run_limit=90", "--expected", "1", "--at-once", "--json")
    assert second.json()["document"]["version"] == 2
    assert "limits" in at_hub("config", "ls").out
    diff = at_hub("config", "diff", "limits").out
    assert "limits: version 1 → 2" in diff
    assert "jobs.run_limit: 120 → 90" in diff
    assert "log.level: debug → (not set)" in diff
    assert "for region=eu → every cluster" in diff
    assert "120" in at_hub("config", "show", "limits", "--version", "1").out
    assert at_hub("config", "roll-back", "limits", "1", "--json").json()["document"]["version"] == 3
    assert len(at_hub("config", "versions", "limits", "--json").json()["versions"]) == 3
    assert "jobs.keep=5000" in at_hub("config", "versions", "limits").out
    assert at_hub("config", "rollout", "limits").code == 0
    assert at_hub("config", "rm", "limits", "--at-once", "--yes").code == 0
    assert at_hub("config", "effective", "nowhere").code == 4
    wrong = at_hub("config", "put", "limits", "--set", "http.port=1")
    assert wrong.code == 1
    assert "hint:" in wrong.err


def test_what_was_not_said_right(hansa: Hansa) -> None:
    for wrong in (
        [],
        ["--set", "x"],
        ["--set", "a.b=1", "--for", "x", "-l", "y"],
        ["--set", "a.b=1", "--percent", "x"],
    ):
        assert hansa("config", "put", "limits", "--hub", "http://127.0.0.1:9", *wrong).code == 2


def test_a_rollout_is_followed_to_its_end(server: SmallServer, hansa: Hansa) -> None:
    path = "GET /v1/configs/limits/rollout"
    server.on(path, ROLLOUT).on(path, {**ROLLOUT, "state": "soaking"}).on(path, {**ROLLOUT, "state": "stopped"})
    ran = hansa("config", "rollout", "limits", "--wait", "--hub", server.url)
    assert ran.code == 1
    assert "version 1 → 2: stopped, stage 1 of 3" in ran.out
    assert "no such queue" in ran.out
    server.on("POST /v1/configs/limits/rollout/pause", {**ROLLOUT, "state": "paused"})
    assert "paused" in hansa("config", "pause", "limits", "--hub", server.url).out


@pytest.mark.slow
def test_policies(at_hub: Hansa, tmp_path: Path) -> None:
    file = tmp_path / "door.yaml"
    file.write_text("least_version: '0.1'\nmost_clusters: 5\n")
    assert at_hub("policy", "put", "door", "-f", str(file)).code == 2  # of which kind?
    assert at_hub("policy", "put", "door", "-f", str(file), "--kind", "windows").code == 2
    would = at_hub("policy", "dry-run", "door", "-f", str(file), "--kind", "admission")
    assert would.out.startswith("door would be version 1\n")
    made = at_hub("policy", "put", "door", "-f", str(file), "--kind", "admission", "-m", "few")
    assert "most_clusters: 5" in made.out
    whole = tmp_path / "whole.json"
    whole.write_text('{"kind": "admission", "rules": {"most_clusters": 6}}')
    assert at_hub("policy", "put", "door", "-f", str(whole), "--json").json()["version"] == 2
    file.write_text("most_clusters: 7\n")
    assert at_hub("policy", "put", "door", "-f", str(file), "--expected", "2").code == 0
    assert "door" in at_hub("policy", "ls").out
    assert len(at_hub("policy", "versions", "door", "--json").json()["versions"]) == 3
    assert at_hub("policy", "rm", "door", "-y").out == "policy door is in force no longer\n"
    assert at_hub("policy", "show", "nothing").code == 4


def test_trees(tmp_path: Path) -> None:
    tree = trees.with_settings({"jobs": {"keep": 1}}, ["jobs.run_limit=5", "log.level=debug", 'images.allowed=["a"]'])
    assert tree == {"jobs": {"keep": 1, "run_limit": 5}, "log": {"level": "debug"}, "images": {"allowed": ["a"]}}
    assert trees.leaves(tree)[0] == ("images.allowed", ["a"])
    for name, text in (("a.toml", "x ="), ("b.yaml", "- 1"), ("c.json", "{"), ("d.yaml", "a: [")):
        (tmp_path / name).write_text(text)
        with pytest.raises(errors.Invalid):
            trees.read(tmp_path / name)
    with pytest.raises(errors.Invalid, match="No such file"):
        trees.read(tmp_path / "nothing")


def test_a_tree_that_grows_without_end_is_refused(tmp_path: Path) -> None:
    laughs = "a0: &a0 {x: 1, y: 1}\n" + "".join(f"a{n}: &a{n} {{x: *a{n - 1}, y: *a{n - 1}}}\n" for n in range(1, 40))
    (tmp_path / "bomb.yaml").write_text(laughs)
    with pytest.raises(errors.Invalid, match="with its aliases"):
        trees.read(tmp_path / "bomb.yaml")
