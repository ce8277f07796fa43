"""A hub is known beside the clusters, chosen as the person says, and gets only its own credentials."""

import os
from pathlib import Path

import pytest

from entrypoints.cli.small_server import Hansa, SmallServer
from hansa.entrypoints.cli import hub_session, profile_files, profiles, session
from hansa.entrypoints.cli.profiles import Profile, Profiles
from hansa.kernel import errors

LUBECK = Profile(name="lubeck", url="https://lubeck.example", user="oscar", password="pw")
NORTH = Profile(name="north", url="https://north.example", role="hub", user="admin", password="pw")
SOUTH = Profile(name="south", url="https://south.example", role="hub", token="jwt")
KNOWN = Profiles().with_profile(LUBECK).with_profile(NORTH).with_profile(SOUTH)
STATUS = {
    "at": 1, "age": 0, "score": 100, "reasons": [], "clusters": 0, "by_state": {}, "degraded": [], "recent": [],
    "total": {},
}  # fmt: skip


def test_of_each_kind_one_is_in_use(tmp_path: Path) -> None:
    assert (KNOWN.current, KNOWN.hub) == ("lubeck", "north")
    assert KNOWN.using("south").hub == "south"
    assert KNOWN.using("south").current == "lubeck"
    assert (KNOWN.without("north").current, KNOWN.without("north").hub) == ("lubeck", "")
    path = tmp_path / "clusters.toml"
    with profiles.editing(path) as draft:
        draft.profiles = KNOWN.using("south")
    assert profiles.load(path) == KNOWN.using("south")
    path.write_text(
        "current = 'a'\nhub = 'b'\n[clusters.a]\nurl = 'http://a'\nrole = 'hub'\n[clusters.b]\nurl = 'http://b'\n"
    )
    assert (profiles.load(path).current, profiles.load(path).hub) == ("", "")


def test_a_name_may_change_its_kind() -> None:
    changed = KNOWN.with_profile(Profile(name="lubeck", url="https://hub.example", role="hub"), current=True)
    assert (changed.current, changed.hub) == ("", "lubeck")
    changed = KNOWN.with_profile(Profile(name="north", url="https://north.example"))
    assert (changed.current, changed.hub) == ("lubeck", "")


@pytest.mark.parametrize(
    ("hub", "env", "name", "sign_in"),
    [
        (None, {}, "north", "user admin"),
        ("south", {}, "south", "token"),
        (None, {"HANSA_HUB": "south"}, "south", "token"),
        ("north", {"HANSA_HUB": "south"}, "north", "user admin"),
        ("https://south.example/", {}, "south", "token"),
        ("http://h:1", {}, "h:1", "none"),
        (None, {"HANSA_HUB": "http://h:1", "HANSA_HUB_TOKEN": "t"}, "h:1", "token"),
        (None, {"HANSA_HUB_USER": "u"}, "north", "user u"),
        # credentials of one hub, or of a cluster, must not travel to another hub
        ("south", {"HANSA_HUB": "http://h:1", "HANSA_HUB_USER": "u"}, "south", "token"),
        (None, {"HANSA_HUB": "http://h:1", "HANSA_TOKEN": "t", "HANSA_USER": "u"}, "h:1", "none"),
    ],
)
def test_choice(hub: str | None, env: dict[str, str], name: str, sign_in: str) -> None:
    chosen = hub_session.choose(KNOWN, hub, env)
    assert (chosen.name, chosen.sign_in, chosen.is_hub) == (name, sign_in, True)


def test_a_hub_is_no_cluster_and_a_cluster_no_hub() -> None:
    with pytest.raises(errors.Invalid, match="north is a hub"):
        session.choose(KNOWN, "north", {})
    with pytest.raises(errors.Invalid, match="lubeck is a cluster"):
        hub_session.choose(KNOWN, "lubeck", {})
    with pytest.raises(hub_session.NoHub) as caught:
        hub_session.choose(Profiles(), None, {})
    assert "hansa login URL --hub" in caught.value.hint


def test_login(server: SmallServer, hansa: Hansa, monkeypatch: pytest.MonkeyPatch) -> None:
    server.on("GET /system/info", {"version": "4.1"}).on("GET /v1/federation/status", STATUS)
    monkeypatch.setenv("HANSA_PASSWORD", "secret-word")
    assert hansa("login", server.url, "--name", "lubeck", "--user", "admin").code == 0
    ran = hansa("login", server.url, "--hub", "--name", "north", "--user", "admin")
    assert ran.out == f"signed in to the hub north ({server.url}), user admin\n"
    assert [seen.path for seen in server.seen] == ["/system/info", "/v1/federation/status"]
    listed = hansa("profile", "ls", "--json").json()
    assert [(row["name"], row["role"], row["current"]) for row in listed] == [
        ("lubeck", "manager", True),
        ("north", "hub", True),
    ]
    with hub_session.opened() as hub:
        assert hub.federation_status().score == 100
    assert hansa("logout", "north").code == 0
    assert profiles.load(profile_files.own(os.environ)).hub == ""


def test_a_hub_that_refuses_is_not_stored(server: SmallServer, hansa: Hansa) -> None:
    server.on("GET /v1/federation/status", b"", status=401)
    ran = hansa("login", server.url, "--hub", "--token", "wrong")
    assert ran.code == 3
    assert profiles.load(profile_files.own(os.environ)).known == {}
