"""One access key is one person's or one service's, whatever the person's subject is."""

import pytest

from hansa.storage import Keys


def key(uid: str) -> str:
    return Keys.of_user(uid, "").access_key


@pytest.mark.parametrize("uid", ["alice@example.org", "62bb11b40398@egi.eu", "auth0|123", "0" * 128, "uid", "service"])
def test_a_uid_that_can_be_carried_is_the_key(uid: str) -> None:
    assert key(uid) == uid


@pytest.mark.parametrize("uid", ["https://idp/users/1", "ä b", "x" * 255, "-a", "ab", "a,b", "a=b", "a/b"])
def test_any_other_gets_a_key_that_can(uid: str) -> None:
    assert Keys.of_user(uid, "long-enough").well_formed
    assert key(uid) != uid


def test_nobody_gets_a_derived_key_by_their_subject() -> None:
    derived = key("https://idp/users/1")
    for mimic in (derived, derived.upper(), derived.title()):
        assert key(mimic) not in (derived, mimic)
    assert key(key(derived)) != key(derived)


def test_nobody_gets_a_key_of_ours_by_their_subject() -> None:
    """Neither one that was lent to a run, nor the user from whom a store derives such keys."""
    for ours in ("service-cowsay", "hansa-loans", "hansa-loan-" + "0" * 40, "hansa-root"):
        for mimic in (ours, ours.title(), ours.upper()):
            assert key(mimic).lower() != ours
