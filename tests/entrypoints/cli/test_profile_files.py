"""Sign-ins are kept in the person's own file, also beside a playground, whose clusters are known besides."""

import os
from pathlib import Path

import pytest

from entrypoints.cli.small_server import Hansa
from hansa.entrypoints.cli import profile_files, profiles, session
from hansa.entrypoints.cli.profiles import Profile

LUBECK = Profile(name="lubeck", url="http://127.0.0.1:8101", user="admin", password="of-the-tour")
HUB = Profile(name="hub", url="http://127.0.0.1:8100", role="hub", user="admin", password="of-the-tour")


def keep(path: Path, *known: Profile) -> None:
    with profiles.editing(path) as draft:
        for one in known:
            draft.profiles = draft.profiles.with_profile(one)


@pytest.fixture
def playground(place: Path) -> Path:
    path = place / ".playground" / "clusters.toml"
    keep(path, LUBECK, HUB)
    return path


def own() -> profiles.Profiles:
    return profiles.load(profile_files.own(os.environ))


def login(hansa: Hansa, name: str, url: str = "https://there.example") -> str:
    ran = hansa("login", url, "--name", name, "--token", "jwt", "--no-check")
    assert ran.code == 0
    return ran.err


def test_the_persons_own_file(tmp_path: Path) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    assert profile_files.own(env) == tmp_path / "config" / "hansa" / "clusters.toml"
    assert profile_files.own(env | {"HANSA_PROFILES": "/elsewhere"}) == Path("/elsewhere")
    assert profile_files.own({}) == Path.home() / ".config" / "hansa" / "clusters.toml"


def test_a_login_beside_a_playground_outlives_it(playground: Path, hansa: Hansa) -> None:
    assert login(hansa, "prod") == ""
    assert profile_files.known(os.environ).current == "prod"
    assert list(profile_files.known(os.environ).known) == ["prod", "lubeck", "hub"]
    assert "jwt" not in playground.read_text()
    playground.unlink()
    assert list(own().known) == ["prod"]
    assert own().current == "prod"


def test_the_tour_finds_its_clusters_whatever_was_known_before(place: Path, hansa: Hansa) -> None:
    login(hansa, "prod")
    login(hansa, "lubeck", "https://lubeck.example")
    keep(place / ".playground" / "clusters.toml", LUBECK, HUB)
    known = profile_files.known(os.environ)
    assert (known.current, known.hub) == ("lubeck", "hub")
    assert session.choose(known, None, {}) == LUBECK
    assert session.choose(known, "prod", {}).url == "https://there.example"


def test_what_is_in_use_beside_a_playground_is_forgotten_with_it(playground: Path, hansa: Hansa) -> None:
    login(hansa, "prod")
    login(hansa, "north")
    for name in ("lubeck", "prod"):
        assert hansa("profile", "use", name).code == 0
        assert profile_files.known(os.environ).current == name
    playground.unlink()
    assert profile_files.known(os.environ).current == "north"


def test_logout_forgets_ones_own_and_leaves_the_playground_alone(playground: Path, hansa: Hansa) -> None:
    login(hansa, "prod")
    assert hansa("logout").out == "forgot prod\n"
    assert own().known == {}
    assert hansa("profile", "use", "lubeck").code == 0
    before = playground.read_text()
    for ran in (hansa("logout"), hansa("logout", "hub"), hansa("profile", "rm", "lubeck")):
        assert ran.code == 5
        assert "is the playground's, and goes with it" in ran.err
        assert ran.err.endswith("hint: name one of yours: hansa profile ls\n")
    assert playground.read_text() == before


def test_a_name_that_gets_another_address_is_told(place: Path, hansa: Hansa) -> None:
    login(hansa, "lubeck", "https://lubeck.example")
    assert login(hansa, "lubeck", "https://lubeck.example") == ""
    assert login(hansa, "lubeck") == "warning: lubeck was https://lubeck.example until now\n"
    keep(place / ".playground" / "clusters.toml", LUBECK)
    told = (
        "warning: lubeck means http://127.0.0.1:8101 here as long as the playground runs; --name gives another name\n"
    )
    assert login(hansa, "lubeck") == told
    assert own().known["lubeck"].url == "https://there.example"


def test_with_a_file_of_ones_choice_a_playground_does_not_count(
    playground: Path, hansa: Hansa, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANSA_PROFILES", str(place / "mine.toml"))
    login(hansa, "prod")
    assert list(profile_files.known(os.environ).known) == ["prod"]


def test_somebody_elses_playground_does_not_count(playground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(profile_files.known(os.environ).known) == ["lubeck", "hub"]
    monkeypatch.setattr("os.geteuid", lambda: 123456)
    assert profile_files.known(os.environ).known == {}
