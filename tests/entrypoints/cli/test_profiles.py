"""Known clusters survive, stay private, and are chosen as the person says."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.entrypoints.cli import profiles, session
from hansa.entrypoints.cli.profiles import Profile, Profiles
from hansa.kernel import errors

LUBECK = Profile(name="lubeck", url="https://lubeck.example", user="oscar", password="pw")
VISBY = Profile(name="visby", url="https://visby.example", token="jwt", verify=False)
KNOWN = Profiles({"lubeck": LUBECK, "visby": VISBY}, "lubeck")


def test_what_is_written_is_read_back_and_only_the_owner_may_read(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "clusters.toml"
    with profiles.editing(path) as draft:
        draft.profiles = draft.profiles.with_profile(LUBECK).with_profile(VISBY)
    assert profiles.load(path) == KNOWN
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(name=_texts, password=_texts)
def test_any_text_survives(name: str, password: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("any") / "clusters.toml"
    profile = Profile(name=name, url="http://x", password=password, expires_at=7)
    with profiles.editing(path) as draft:
        draft.profiles = Profiles({name: profile})
    assert profiles.load(path).known == {name: profile}


def test_a_failed_edit_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "clusters.toml"
    with profiles.editing(path) as draft:
        draft.profiles = KNOWN
    with pytest.raises(errors.NotFound), profiles.editing(path) as draft:
        draft.profiles = draft.profiles.without("lubeck").without("lubeck")
    assert profiles.load(path) == KNOWN
    with pytest.raises(profiles.BadProfiles), profiles.editing(path) as draft:
        draft.profiles = KNOWN.with_profile(Profile(name="x", url="http://x", password="\udc80"))
    assert profiles.load(path) == KNOWN
    assert sorted(item.name for item in tmp_path.iterdir()) == ["clusters.lock", "clusters.toml"]


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "clusters.toml"
    path.write_text("[clusters\n")
    with pytest.raises(profiles.BadProfiles, match=r"clusters\.toml"):
        profiles.load(path)
    path.write_text("[clusters.a]\nuser = 'x'\n")
    with pytest.raises(profiles.BadProfiles, match="no url"):
        profiles.load(path)
    path.write_text("future = 1\n[clusters.a]\nurl = 'http://a'\nverify = 'maybe'\ncolour = 'blue'\n")
    assert profiles.load(path).known["a"] == Profile(name="a", url="http://a")


def test_secrets_are_not_in_the_representation() -> None:
    assert "pw" not in repr(LUBECK)
    assert "jwt" not in repr(VISBY)


@pytest.mark.parametrize(
    ("cluster", "env", "name", "sign_in"),
    [
        (None, {}, "lubeck", "user oscar"),
        ("visby", {}, "visby", "token"),
        (None, {"HANSA_CLUSTER": "visby"}, "visby", "token"),
        ("lubeck", {"HANSA_CLUSTER": "visby"}, "lubeck", "user oscar"),
        (None, {"HANSA_URL": "http://h:1/", "HANSA_CLUSTER": "visby"}, "h:1", "none"),
        (None, {"HANSA_URL": "http://h:1", "HANSA_TOKEN": "t"}, "h:1", "token"),
        (None, {"HANSA_URL": "http://h:1", "HANSA_USER": "u"}, "h:1", "user u"),
        (None, {"HANSA_TOKEN": "t"}, "lubeck", "token"),
        # what belongs to HANSA_URL must not travel to another cluster
        ("visby", {"HANSA_URL": "http://h:1", "HANSA_USER": "u"}, "visby", "token"),
    ],
)
def test_choice(cluster: str | None, env: dict[str, str], name: str, sign_in: str) -> None:
    chosen = session.choose(KNOWN, cluster, env)
    assert (chosen.name, chosen.sign_in) == (name, sign_in)


def test_no_choice_is_explained() -> None:
    with pytest.raises(session.NotSignedIn) as caught:
        session.choose(Profiles(), None, {})
    assert "hansa login" in caught.value.hint
    with pytest.raises(profiles.NoProfile, match="lubeck, visby"):
        session.choose(KNOWN, "riga", {})


@pytest.mark.parametrize("url", ["lubeck", "ftp://x", "http://", "http://u:p@h", "http://h:x", "http://h:99999"])
def test_bad_addresses(url: str) -> None:
    with pytest.raises(errors.Invalid):
        session.checked_url(url)


def test_addresses_keep_their_path() -> None:
    assert session.checked_url(" https://h:8443/oscar/?x=1 ") == "https://h:8443/oscar"
