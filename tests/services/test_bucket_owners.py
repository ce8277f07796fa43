"""Is a bucket still the one that a service's owner meant, and what is that owner told of buckets of others?"""

import pytest

from hansa.services import Record, Service, bucket_owners
from hansa.storage import Bucket


def bucket(name: str = "results", owner: str = "bob", visibility: str = "public") -> Bucket:
    return Bucket(name, owner, owner, visibility, (), "", "ready", 1.0)


@pytest.mark.parametrize(
    ("meant", "now", "changed"),
    [
        ({"results": "alice"}, "alice", False),
        ({"results": "alice"}, "bob", True),
        ({"results": "bob"}, "bob", False),
        ({"results": "bob"}, "alice", False),  # it came to the service's owner
        ({"results": "bob"}, "carol", True),
        ({"results": "bob"}, "", False),  # it is gone
        ({"other": "alice"}, "bob", False),
        ({}, "bob", False),  # written before owners were noted
    ],
)
def test_a_bucket_is_the_one_that_was_meant(meant: dict[str, str], now: str, changed: bool) -> None:
    record = Record(Service(name="gray", owner="alice"), 1, "ready", False, (), 1.0, 1.0, meant)
    assert bucket_owners.changed_hands(record, "results", now) is changed


def test_only_the_owner_of_a_service_consents_to_new_owners_of_its_buckets() -> None:
    named = [bucket("old", owner="bob"), bucket("new", owner="carol")]
    before = {"old": "alice", "left-out": "alice"}
    assert bucket_owners.noted(named, before, by_owner=True) == {"old": "bob", "new": "carol"}
    assert bucket_owners.noted(named, before, by_owner=False) == {"old": "alice", "new": "carol"}


def test_a_warning_names_the_owner_and_who_may_read() -> None:
    [told] = bucket_owners.warnings("alice", [bucket(), bucket("hers", owner="alice")])
    assert "bucket results belongs to 'bob'" in told
    assert "by everybody in this cluster" in told
    [told] = bucket_owners.warnings("alice", [bucket(visibility="restricted")])
    assert "those whom its owner lets in" in told
    [told] = bucket_owners.warnings("cluster_admin", [bucket(visibility="private")])
    assert "by its owner." in told


def test_warnings_fit_into_the_headers_of_an_answer() -> None:
    odd = [bucket(f"b{number}", owner="bób\r\nX-Evil: 1") for number in range(200)]
    told = bucket_owners.warnings("alice", odd)
    assert len(told) < 20
    assert all(text.isascii() and text.isprintable() for text in told)
    assert "192 more buckets" in told[-1]
