"""Applying an FDL creates what is missing, updates what exists, and says which failed."""

import io
from pathlib import Path

import pytest

from entrypoints.cli.small_server import Hansa, SmallServer

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
    admin.on("GET /system/services/second", {"name": "second", "cpu": "1.0", "image": "old", "owner": "ada"})
    admin.on("POST /system/services", b"", status=201).on("PUT /system/services", b"", status=204)
    ran = hansa("apply", "-f", fdl)
    assert ran.code == 0, ran.err
    host = admin.url.removeprefix("http://")
    assert ran.out.splitlines() == [f"created  first  in {host}", f"updated  second  in {host}, owner ada"]
    assert "unknown field memroy; did you mean memory?" in ran.err
    assert f"the file names lubeck; going to {host}, as you asked with HANSA_URL" in ran.err
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


@pytest.fixture
def two_people(server: SmallServer, hansa: Hansa) -> SmallServer:
    """A cluster known as `lubeck`, with the rights of its admin and in use, and as `bob`, with the rights of bob."""
    server.on("POST /system/services", b"", status=201)
    assert hansa("login", server.url, "--name", "bob", "--token", "bobs", "--no-check").code == 0
    assert hansa("login", server.url, "--name", "lubeck", "--token", "admins", "--no-check").code == 0
    return server


def test_what_is_said_wins_over_the_file(
    two_people: SmallServer, hansa: Hansa, fdl: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def applied(*options: str) -> tuple[set[str], str]:
        two_people.seen.clear()
        ran = hansa("apply", "-f", fdl, *options)
        assert ran.code == 0, ran.err
        return {seen.headers["authorization"] for seen in two_people.seen}, ran.err

    assert applied()[0] == {"Bearer admins"}
    who, said = applied("-c", "bob")
    assert who == {"Bearer bobs"}
    assert "the file names lubeck; going to bob, as you asked with -c" in said
    monkeypatch.setenv("HANSA_CLUSTER", "bob")
    who, said = applied()
    assert who == {"Bearer bobs"}
    assert "the file names lubeck; going to bob, as you asked with HANSA_CLUSTER" in said
    assert applied("-c", "lubeck")[0] == {"Bearer admins"}
    monkeypatch.setenv("HANSA_URL", two_people.url)
    monkeypatch.setenv("HANSA_TOKEN", "another")
    who, said = applied()
    assert who == {"Bearer another"}
    assert "as you asked with HANSA_URL" in said


def test_credentials_of_the_environment_give_way_to_no_profile(
    two_people: SmallServer, hansa: Hansa, fdl: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hansa("profile", "use", "bob").code == 0
    monkeypatch.setenv("HANSA_TOKEN", "another")
    two_people.seen.clear()
    ran = hansa("apply", "-f", fdl)
    assert "the file names lubeck, and HANSA_TOKEN is for bob" in ran.err
    assert "say where to go: -c lubeck" in ran.err
    assert {seen.headers["authorization"] for seen in two_people.seen} == {"Bearer another"}  # visby has no profile


def test_services_that_would_overwrite_each_other(admin: SmallServer, hansa: Hansa, tmp_path: Path) -> None:
    file = tmp_path / "twins.yaml"
    file.write_text(FDL.replace("second", "first").replace("script.sh", "'echo hi\n\n'"))
    ran = hansa("apply", "-f", str(file))
    assert "first stands for several clusters, and HANSA_URL sends all of them to one" in ran.err
    assert admin.seen == []


def test_the_owner_of_what_was_made(admin: SmallServer, hansa: Hansa, fdl: str) -> None:
    admin.on("GET /system/services/first", b"404 page not found", status=404)
    admin.on("GET /system/services/first", {"name": "first", "owner": "bob"})
    admin.on("POST /system/services", b"", status=201)
    ran = hansa("apply", "-f", fdl, "--json")
    assert [row.get("owner") for row in ran.json()] == ["bob", None]


STAR = """
functions:
  oscar:
  - lubeck:
      name: star
      image: busybox
      script: script.sh
      federation:
        topology: star
        members:
        - {type: oscar, cluster_id: visby, service_name: star-v}
        - {type: oscar, cluster_id: riga, service_name: star-r}
"""


@pytest.fixture
def star(fdl: str, server: SmallServer, hansa: Hansa, monkeypatch: pytest.MonkeyPatch) -> str:
    """A federated service, without a refresh token. Of its two members one is known with a password."""
    Path(fdl).write_text(STAR)
    server.on("GET /v1/about", {"name": "hansa"}, Content_Type="application/json")
    server.on("POST /system/services", b"", status=201).on("PUT /system/services", b"", status=204)
    monkeypatch.setenv("HANSA_PASSWORD", "of-visby")
    assert hansa("login", "http://127.0.0.2:1", "-n", "visby", "--user", "admin", "--no-check").code == 0
    assert hansa("login", "http://127.0.0.3:1", "-n", "riga", "--token", "t", "--no-check").code == 0
    assert hansa("login", server.url, "-n", "lubeck", "--user", "admin", "--no-check").code == 0
    monkeypatch.delenv("HANSA_PASSWORD")
    return fdl


def test_passwords_do_not_go_along_unasked(server: SmallServer, hansa: Hansa, star: str) -> None:
    ran = hansa("apply", "-f", star)
    assert ran.code == 1
    assert "the password of user admin of visby would have to go along to lubeck, and nobody can be asked" in ran.err
    assert "--send-credentials" in ran.err
    assert (server.calls("POST"), server.calls("PUT")) == ([], [])
    told = hansa("apply", "-f", star, "--dry-run")
    assert told.code == 0
    assert "the password of user admin of visby would go along to lubeck" in told.err


def test_passwords_go_along_when_the_person_says_so(server: SmallServer, hansa: Hansa, star: str) -> None:
    ran = hansa("apply", "-f", star, "--send-credentials")
    assert "star: the password of user admin of visby goes along; lubeck keeps it encrypted" in ran.err
    (sent,) = server.calls("POST")
    clusters = sent.json()["clusters"]
    assert (clusters["visby"]["auth_user"], clusters["visby"]["auth_password"]) == ("admin", "of-visby")
    assert (clusters["riga"]["auth_user"], clusters["riga"]["auth_password"]) == ("", "")


@pytest.mark.parametrize(("answer", "sent"), [("y\n", 1), ("n\n", 0)])
def test_a_person_is_asked(
    server: SmallServer, hansa: Hansa, star: str, monkeypatch: pytest.MonkeyPatch, answer: str, sent: int
) -> None:
    person = io.StringIO(answer)
    monkeypatch.setattr(person, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", person)
    ran = hansa("apply", "-f", star)
    assert "send the password of user admin of visby along?" in ran.err
    assert (len(server.calls("POST")), ran.code) == (sent, 1 - sent)


def test_nothing_goes_again_that_the_service_has(server: SmallServer, hansa: Hansa, star: str) -> None:
    known = {"endpoint": "http://127.0.0.2:1", "auth_user": "admin", "auth_password": "", "ssl_verify": True}
    server.on("GET /system/services/star", {"name": "star", "owner": "ada", "clusters": {"visby": known}})
    ran = hansa("apply", "-f", star)
    assert (ran.code, ran.err) == (0, "")
    (sent,) = server.calls("PUT")
    assert sent.json()["clusters"]["visby"] == known
    elsewhere = {**known, "endpoint": "http://127.0.0.9:1"}
    server.on("GET /system/services/star", {"name": "star", "clusters": {"visby": elsewhere}})
    assert hansa("apply", "-f", star).code == 0  # the first answer was still due
    assert hansa("apply", "-f", star).code == 1


def test_nothing_is_said_when_nothing_goes(server: SmallServer, hansa: Hansa, star: str) -> None:
    assert hansa("profile", "rm", "visby").code == 0
    ran = hansa("apply", "-f", star)
    assert (ran.code, ran.err) == (0, "")


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
