"""Nobody's uid is somebody else's, whatever subjects the issuers give out."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.identity import ADMIN_UID, KnownPerson, Uids, choose_home, claim_namespace, qualified
from hansa.identity.errors import HomeContradicted
from hansa.storage import Keys

HOME, AWAY, THIRD = "https://home.test/realms/a", "https://away.test/realms/a", "https://third.test"
ISSUERS = (HOME, AWAY, THIRD)
_CHARACTERS = st.characters(exclude_categories=("Cs", "Cc", "Cf", "Zl", "Zp"))
_SUBJECTS = st.text(_CHARACTERS, min_size=1, max_size=255)


def looks(subject: str) -> list[str]:
    """What somebody could call themselves to be taken for this one."""
    uids = [qualified(issuer, subject) for issuer in ISSUERS]
    odd = [form(uid) for uid in uids for form in (str.upper, str.title, str.swapcase)]
    wide = [unicodedata.normalize(form, f"{subject}é") for form in ("NFC", "NFD", "NFKC")]
    return [
        subject,
        subject.upper(),
        f" {subject}",
        f"{subject} ",
        *uids,
        *odd,
        *wide,
        Keys.of_user(f"{subject} é", "").access_key,
        "service-x",
    ]


def test_the_home_issuers_people_have_their_plain_subject() -> None:
    uids = Uids(HOME)
    for subject in (
        "alice",
        "62bb11b40398f7@egi.eu",
        "x" * 255,
        "https://orcid.test/0000",
        "Ünï cødé",
        "a@other-issuer",
    ):
        assert uids.of(HOME, subject) == subject


def test_everybody_else_has_one_of_a_fixed_form() -> None:
    uid = Uids(HOME).of(AWAY, "alice")
    # as docs/guides/sign-in.md makes it by hand: printf '%s\n%s' ISSUER SUBJECT | sha256sum | cut -c1-40
    assert uid == "74fc3b483f84ef604ad1d3bcffe737a7f4b23d58@other-issuer"
    assert Uids(THIRD).of(AWAY, "alice") == uid
    assert len(Uids(HOME).of(AWAY, "x" * 255)) == len(uid) == 53
    assert Keys.of_user(uid, "").access_key == uid


def test_a_subject_that_looks_qualified_is_qualified_at_home_too() -> None:
    uids = Uids(HOME)
    theirs = uids.of(AWAY, "alice")
    for subject in (theirs, theirs.upper(), theirs.title()):
        assert uids.of(HOME, subject) == qualified(HOME, subject) != theirs


def test_an_issuer_is_not_part_of_a_subject() -> None:
    assert qualified("https://a/b", "c") != qualified("https://a", "/bc")


@given(st.lists(_SUBJECTS, min_size=1, max_size=4))
def test_two_people_never_have_one_uid(subjects: list[str]) -> None:
    uids = Uids(HOME)
    people = {(issuer, look) for subject in subjects for look in looks(subject) for issuer in ISSUERS}
    found = {uids.of(*person): person for person in people}
    assert len(found) == len(people)
    assert len({Keys.of_user(uid, "").access_key for uid in found}) == len(people)


@given(st.lists(_SUBJECTS, min_size=2, max_size=6, unique=True))
def test_two_people_never_share_a_namespace(subjects: list[str]) -> None:
    taken: dict[str, str] = {}
    for issuer in ISSUERS:
        for subject in subjects:
            uid = Uids(HOME).of(issuer, subject)
            taken.setdefault(claim_namespace("oscar-svc", uid, taken.get), uid)
    assert len(taken) == len(ISSUERS) * len(subjects) - (ADMIN_UID in subjects)


def test_who_is_on_record_keeps_their_uid() -> None:
    """As databases were: a plain subject, of whichever issuer came first."""
    uids = Uids(HOME, [KnownPerson(HOME, "alice", "alice"), KnownPerson(AWAY, "bob", "bob")])
    assert uids.of(HOME, "alice") == "alice"
    assert uids.of(AWAY, "alice") == qualified(AWAY, "alice")
    assert uids.of(AWAY, "bob") == "bob"
    assert uids.of(HOME, "bob") == qualified(HOME, "bob")
    assert uids.of(THIRD, "bob") == qualified(THIRD, "bob")


def test_a_moved_issuers_people_keep_what_they_had() -> None:
    before = qualified("https://old.test", "alice")
    uids = Uids(HOME, [KnownPerson(AWAY, "alice", before)])
    assert uids.of(AWAY, "alice") == before
    assert uids.of(AWAY, "bob") == qualified(AWAY, "bob")
    assert uids.of(HOME, before) == qualified(HOME, before)


def test_without_a_home_nobody_is_plain() -> None:
    assert Uids("").of(HOME, "alice") == qualified(HOME, "alice")


@pytest.mark.parametrize(
    ("recorded", "asked", "trusted", "home"),
    [
        ("", "", [HOME, AWAY], HOME),
        ("", AWAY, [HOME, AWAY], AWAY),
        ("", "", [], ""),
        (HOME, "", [AWAY, HOME], HOME),
        (HOME, HOME, [AWAY, HOME], HOME),
        (HOME, HOME, [AWAY], HOME),  # said to be gone
        (HOME, "", [], HOME),  # nobody signs in by token any more
    ],
)
def test_the_home_issuer(recorded: str, asked: str, trusted: list[str], home: str) -> None:
    assert choose_home(recorded, asked, trusted) == home


@pytest.mark.parametrize(
    ("recorded", "asked", "trusted"),
    [(HOME, "", [AWAY]), (HOME, AWAY, [AWAY]), (HOME, AWAY, [HOME, AWAY]), ("", THIRD, [HOME, AWAY])],
)
def test_a_contradiction_is_refused(recorded: str, asked: str, trusted: list[str]) -> None:
    with pytest.raises(HomeContradicted) as raised:
        choose_home(recorded, asked, trusted)
    assert (recorded or asked) in raised.value.message
    assert "sign-in.md" in raised.value.hint
