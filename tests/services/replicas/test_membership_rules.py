"""Which members are there after a change, by identity, whatever shape the client sends it in?"""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.entrypoints.http.wire import decode
from hansa.services import BadService, Member
from hansa.services.membership import MembersRequest, added, identity, removed, updated


def member(cluster: str = "visby", service: str = "gray", **more: Any) -> Member:
    return Member(**{"type": "oscar", "cluster_id": cluster, "service_name": service, **more})


def endpoint(url: str, **more: Any) -> Member:
    return Member(**{"type": "endpoint", "url": url, **more})


def request(members: list[Member] | None = None, update: list[Member] | None = None) -> MembersRequest:
    return MembersRequest(members=tuple(members or ()), update=tuple(update or ()))


MEMBERS = st.builds(
    member,
    st.sampled_from(["visby", "riga"]),
    st.sampled_from(["a", "b"]),
    type=st.sampled_from(["oscar", "OSCAR", "Oscar"]),
    priority=st.integers(0, 3),
)
LISTS = st.lists(MEMBERS, max_size=6, unique_by=identity).map(tuple)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (member(), member(type="OSCAR"), True),
        (member(), member(priority=7, url="http://x", headers={"a": "b"}, ssl_verify=True), True),
        (member(), member("riga"), False),
        (member(), member(service="grey"), False),
        (member(), member(type="endpoint"), False),
        (endpoint("http://a"), endpoint("http://b"), False),
        (endpoint("http://a"), endpoint("http://a", priority=3), True),
        (endpoint("http://a", service_name="hook"), endpoint("http://b", service_name="hook"), True),
    ],
)
def test_type_cluster_and_service_make_a_member(one: Member, other: Member, same: bool) -> None:
    assert (identity(one) == identity(other)) == same


def test_what_is_there_stays_as_it_is_when_added_again() -> None:
    before = (member(priority=3), member("riga"))
    assert added(before, (member(type="OSCAR", priority=9), member("riga"))) == before


def test_twice_in_one_request_is_one_member() -> None:
    assert len(added((), (member(), member(type="OSCAR"), member()))) == 1


def test_two_endpoints_are_two_members() -> None:
    assert len(added((endpoint("http://a"),), (endpoint("http://b"), endpoint("http://a")))) == 2


@given(LISTS, st.lists(MEMBERS, max_size=6))
def test_adding_loses_nobody_and_doubles_nobody(before: tuple[Member, ...], fresh: list[Member]) -> None:
    after = added(before, tuple(fresh))
    assert after[: len(before)] == before
    assert {identity(one) for one in after} == {identity(one) for one in (*before, *fresh)}
    assert len({identity(one) for one in after}) == len(after)
    assert added(after, tuple(fresh)) == after


@given(LISTS, st.lists(MEMBERS, max_size=6))
def test_removing_removes_exactly_those_named(before: tuple[Member, ...], gone: list[Member]) -> None:
    after = removed(before, tuple(gone))
    leaving = {identity(one) for one in gone}
    assert after == tuple(one for one in before if identity(one) not in leaving)
    assert removed(after, tuple(gone)) == after


@given(LISTS, st.lists(MEMBERS, max_size=6))
def test_adding_and_removing_again_leaves_what_was(before: tuple[Member, ...], fresh: list[Member]) -> None:
    new = tuple(one for one in fresh if identity(one) not in {identity(old) for old in before})
    assert removed(added(before, new), new) == before


def test_each_entry_has_its_own_new_form() -> None:
    before = (member(), member("riga"), member("narva"))
    changed = updated(before, request([member(), member("riga")], [member(priority=1), member("riga", priority=2)]))
    assert [one.priority for one in changed] == [1, 2, 0]


def test_the_new_forms_alone_name_the_members_themselves() -> None:
    for asked in (request(update=[member(priority=5)]), request([member(priority=5)])):
        assert updated((member(), member("riga")), asked) == (member(priority=5), member("riga"))


def test_a_member_may_become_another_one() -> None:
    assert updated((member(), member("riga")), request([member()], [member("narva")])) == (
        member("narva"),
        member("riga"),
    )


@pytest.mark.parametrize(
    ("members", "update", "why"),
    [
        ([member(), member("riga")], [member()], "as many"),
        ([member("narva")], [member("narva", priority=1)], "no such member: oscar/narva/gray"),
        ([], [member("narva")], "no such member"),
        ([member(), member(type="OSCAR")], [member(priority=1), member(priority=2)], "twice"),
    ],
)
def test_an_update_that_fits_nothing_is_refused(members: list[Member], update: list[Member], why: str) -> None:
    with pytest.raises(BadService, match=why):
        updated((member(), member("riga")), request(members, update))


def test_an_empty_update_changes_nothing() -> None:
    assert updated((member(),), request()) == (member(),)


@pytest.mark.parametrize(
    "body",
    [
        {"members": [{"type": "oscar", "cluster_id": "visby", "service_name": "gray", "priority": 4}]},
        {"members": None, "update": [{"type": "oscar", "cluster_id": "visby", "service_name": "gray", "priority": 4}]},
        {"Members": [{"Type": "oscar", "Cluster_ID": "visby", "Service_Name": "gray", "Priority": 4}], "extra": 1},
        {
            "members": [
                {"type": "oscar", "cluster_id": "visby", "service_name": "gray", "ssl_verify": True, "priority": 4,
                 "headers": None, "url": ""}
            ],
            "clusters": None,
            "storage_providers": None,
        },
    ],
)  # fmt: skip
def test_old_clients_are_understood(body: dict[str, Any]) -> None:
    asked = decode(msgspec.json.encode(body), MembersRequest)
    assert [one.priority for one in updated((member(),), asked)] == [4]
    assert (asked.clusters, asked.storage_providers, asked.delete) == ({}, {}, False)
