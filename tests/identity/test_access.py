"""Who may see, call and change what?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.identity import Caller, Identity, access
from hansa.kernel.errors import Forbidden, NotFound

_UIDS = st.sampled_from(["", "alice@test", "bob@test", "carol@test", "cluster_admin"])
_VISIBILITIES = st.sampled_from(["public", "restricted", "private", "", "PUBLIC", "everyone"])
_ALLOWED = st.none() | st.lists(_UIDS)


def user(uid: str, users_admin: tuple[str, ...] = ()) -> Caller:
    return Caller.user(Identity(uid, "https://issuer.test", uid, frozenset(), 0.0), uid, users_admin)


ALICE, BOB, ADMIN = user("alice@test"), user("bob@test"), Caller.admin()


@pytest.mark.parametrize(
    ("visibility", "allowed", "seen"),
    [
        ("public", [], True),
        ("private", ["bob@test"], False),
        ("restricted", ["bob@test"], True),
        ("restricted", ["carol@test"], False),
        ("restricted", None, False),
        ("", ["bob@test"], False),
        ("Public", ["bob@test"], False),
    ],
)
def test_who_sees_a_service_of_alice(visibility: str, allowed: list[str] | None, seen: bool) -> None:
    assert access.may_see(BOB, owner="alice@test", visibility=visibility, allowed=allowed) is seen
    assert access.may_see(ALICE, owner="alice@test", visibility=visibility, allowed=allowed)
    assert access.may_see(ADMIN, owner="alice@test", visibility=visibility, allowed=allowed)


def test_the_admin_view_gives_no_right_to_see_or_change() -> None:
    watcher = user("watcher@test", ("watcher@test",))
    assert access.may_view_cluster(watcher)
    assert not access.may_change(watcher, "alice@test")
    assert not access.may_see(watcher, owner="alice@test", visibility="private")
    with pytest.raises(Forbidden):
        access.require_admin(watcher, "change the configuration")
    with pytest.raises(Forbidden):
        access.require_cluster_view(ALICE, "the manager's log")
    access.require_cluster_view(watcher, "the manager's log")
    access.require_admin(ADMIN, "change the configuration")


def test_a_service_token_calls_its_own_service_and_nothing_else() -> None:
    token = Caller.of_service("cowsay", "alice@test")
    assert access.may_invoke(token, service="cowsay", owner="alice@test", visibility="private")
    assert not access.may_invoke(token, service="other", owner="alice@test", visibility="public")
    assert not access.may_invoke(token, service="cowsay", owner="bob@test", visibility="public")
    assert not access.may_see(token, owner="alice@test", visibility="public")
    assert not access.may_change(token, "alice@test")


def test_refusals_name_the_thing_and_the_next_step() -> None:
    with pytest.raises(Forbidden) as seen:
        access.require_visible(BOB, "bucket data", owner="alice@test", visibility="private")
    assert "bucket data" in str(seen.value)
    with pytest.raises(NotFound) as invoked:
        access.require_invocable(BOB, "cowsay", owner="alice@test", visibility="private")
    assert "cowsay" in str(invoked.value)
    with pytest.raises(Forbidden) as changed:
        access.require_change(BOB, "service cowsay", owner="alice@test")
    assert "service cowsay" in str(changed.value)
    for refusal in (seen, invoked, changed):
        assert refusal.value.hint
        assert "alice" not in str(refusal.value)  # whose it is, is not the refused caller's business
    access.require_visible(ALICE, "bucket data", owner="alice@test", visibility="private")
    access.require_invocable(ALICE, "cowsay", owner="alice@test", visibility="private")
    access.require_change(ALICE, "service cowsay", owner="alice@test")


def test_the_admins_uid_cannot_be_a_users() -> None:
    with pytest.raises(Exception, match="reserved"):
        user("cluster_admin")


@given(_UIDS, _UIDS, _VISIBILITIES, _ALLOWED)
def test_who_may_change_may_see_and_call(uid: str, owner: str, visibility: str, allowed: list[str] | None) -> None:
    caller = Caller(kind="user", uid=uid, name=uid)
    if access.may_change(caller, owner):
        assert access.may_see(caller, owner=owner, visibility=visibility, allowed=allowed)
        assert access.may_invoke(caller, service="s", owner=owner, visibility=visibility, allowed=allowed)


@given(_UIDS, _UIDS, st.text(), _ALLOWED)
def test_only_public_or_listed_things_are_seen_by_others(
    uid: str, owner: str, visibility: str, allowed: list[str] | None
) -> None:
    caller = Caller(kind="user", uid=uid, name=uid)
    if access.may_see(caller, owner=owner, visibility=visibility, allowed=allowed) and uid != owner:
        assert visibility == "public" or (visibility == "restricted" and uid in (allowed or []))


@given(_UIDS, _UIDS)
def test_an_empty_uid_owns_nothing(uid: str, owner: str) -> None:
    assert access.may_change(Caller(kind="user", uid=uid, name=""), owner) is (uid == owner != "")
