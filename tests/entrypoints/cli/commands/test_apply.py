"""Applying an FDL creates what is missing, updates what exists, and says which failed."""

from pathlib import Path

import pytest

from entrypoints.cli.small_server import TOKEN, Hansa, SmallServer

FDL = """
functions:
  oscar:
  - lubeck: {name: first, image: busybox, cpu: 1, script: script.sh, memroy: 1Gi}
  - visby: {name: second, image: busybox, cpu: 1, script: script.sh}
"""


@pytest.fixture
def fdl(tmp_path: Path) -> str:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "script.sh").write_text("#!/bin/sh\necho hi\n")
    (folder / "fdl.yaml").write_text(FDL)
    return str(folder / "fdl.yaml")


def test_create_and_update(admin: SmallServer, hansa: Hansa, fdl: str) -> None:
    admin.on("GET /system/services/second", {"name": "second", "cpu": "1.0", "image": "old", "token": TOKEN})
    admin.on("POST /system/services", b"", status=201).on("PUT /system/services", b"", status=204)
    ran = hansa("apply", "-f", fdl)
    assert ran.code == 0, ran.err
    host = admin.url.removeprefix("http://")
    assert ran.out.splitlines() == [f"created  first  in {host}", f"updated  second  in {host}"]
    assert "unknown field memroy; did you mean memory?" in ran.err
    assert f"no profile is named lubeck; its services go to {host}" in ran.err
    (created,), (updated,) = admin.calls("POST"), admin.calls("PUT")
    assert created.json()["script"] == "#!/bin/sh\necho hi\n"
    assert (created.json()["cpu"], created.json()["cluster_id"], updated.json()["cluster_id"]) == (
        "1", "lubeck", "visby"
    )  # fmt: skip


def test_dry_run_changes_nothing_and_shows_what_would(admin: SmallServer, hansa: Hansa, fdl: str) -> None:
    stored = {"name": "second", "cluster_id": "visby", "cpu": "1.0", "image": "old", "script": "#!/bin/sh\necho hi\n"}
    admin.on("GET /system/services/second", stored)
    ran = hansa("apply", "-f", fdl, "--dry-run")
    assert ran.code == 0
    assert "would create  first" in ran.out
    assert "would update  second" in ran.out
    assert "    image: old → busybox" in ran.out.splitlines()
    assert {seen.method for seen in admin.seen} == {"GET"}
    listed = hansa("apply", "-f", fdl, "--dry-run", "--json").json()
    assert listed[1]["changes"] == [{"field": "image", "before": "old", "after": "busybox"}]


def test_one_failure_does_not_stop_the_others(admin: SmallServer, hansa: Hansa, fdl: str) -> None:
    admin.on("POST /system/services", b"it exists in another namespace", status=409)
    admin.on("POST /system/services", b"", status=201)
    ran = hansa("apply", "-f", fdl, "--json")
    assert ran.code == 5
    assert [row["action"] for row in ran.json()] == ["failed", "created"]
    assert ran.json()[0]["error"]["code"] == "request.conflict"
    assert "error: first: it exists in another namespace" in ran.err


def test_a_profile_named_like_the_key_is_the_target(server: SmallServer, hansa: Hansa, fdl: str) -> None:
    with SmallServer() as visby:
        for cluster in (server, visby):
            cluster.on("POST /system/services", b"", status=201)
        assert hansa("login", visby.url, "--name", "visby", "--token", "v", "--no-check").code == 0
        assert hansa("login", server.url, "--name", "lubeck", "--token", "l", "--no-check").code == 0
        ran = hansa("apply", "-f", fdl)
        assert ran.out.splitlines() == ["created  first  in lubeck", "created  second  in visby"]
        assert [seen.json()["name"] for seen in visby.calls("POST")] == ["second"]
        assert {seen.headers["authorization"] for seen in visby.seen} == {"Bearer v"}
        assert {seen.headers["authorization"] for seen in server.seen} == {"Bearer l"}


def test_federation_warnings_are_passed_on(admin: SmallServer, hansa: Hansa, fdl: str) -> None:
    for name in ("first", "second"):
        admin.on(f"GET /system/services/{name}", {"name": name})
    admin.on("PUT /system/services", b"Updated with federation warnings: [visby is away]")
    ran = hansa("apply", "-f", fdl)
    assert ran.code == 0
    assert "visby is away" in ran.err


def test_files_that_cannot_be_read(hansa: Hansa, fdl: str, tmp_path: Path) -> None:
    assert hansa("apply", "-f", "none.yaml").code == 1
    (tmp_path / "folder" / "script.sh").unlink()
    ran = hansa("apply", "-f", fdl)
    assert ran.code == 1
    assert "script.sh" in ran.err
    (tmp_path / "folder" / "script.sh").write_bytes(b"\x7fELF\xff\xfe")
    assert "not UTF-8" in hansa("apply", "-f", fdl).err


def test_a_file_that_grows_without_end_is_refused(admin: SmallServer, hansa: Hansa, tmp_path: Path) -> None:
    laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
    )
    service = "functions: {oscar: [{c: {name: a, image: b, script: 'x\n', kserve: *a11}}]}"
    (tmp_path / "bomb.yaml").write_text(laughs + service)
    ran = hansa("apply", "-f", str(tmp_path / "bomb.yaml"))
    assert ran.code != 0
    assert "with its aliases (*) written out" in ran.err
    assert admin.seen == []
