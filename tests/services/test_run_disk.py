"""A run gets what every run has, or more if its service asks for it and its owner may."""

import pytest

from hansa.services import RunDisk, Service
from hansa.services.errors import BadService

MIB = 2**20
RULE = RunDisk(64 * MIB, lambda owner: 256 * MIB if owner == "alice" else None)


def service(asked: str, owner: str = "alice") -> Service:
    return Service(name="tool", image="tool", script="true", ephemeral_storage_request=asked, owner=owner)


@pytest.mark.parametrize(
    ("asked", "owner", "given"),
    [
        ("", "alice", 64),
        ("1Mi", "alice", 64),  # a request: what every run has is never less
        ("128Mi", "alice", 128),
        ("1Gi", "alice", 256),  # the quota became smaller since
        ("1Gi", "admin", 1024),
    ],
)
def test_what_a_run_gets(asked: str, owner: str, given: int) -> None:
    assert RULE.of(service(asked, owner)) == given * MIB


def test_a_share_below_what_every_run_has_does_not_take_it_away() -> None:
    assert RunDisk(64 * MIB, lambda owner: MIB).of(service("1Gi")) == 64 * MIB


def test_more_than_the_owner_may_ever_have_is_refused() -> None:
    RULE.check(service("256Mi"))
    RULE.check(service("10Gi", "admin"))
    with pytest.raises(BadService, match="all runs of its owner may hold"):
        RULE.check(service("257Mi"))


def test_without_a_rule_there_is_no_limit() -> None:
    assert RunDisk().of(service("1Gi")) == 0
