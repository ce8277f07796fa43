"""Is what is wanted of a cluster decided as people mean it: all of it or nothing, and what is not said unchanged?"""

from dataclasses import replace
from typing import Any

import pytest

from federation.known_clusters import record
from hansa.federation import ClusterRecord, wanting
from hansa.federation.errors import WrongState
from hansa.federation.ports import NOW
from hansa.kernel.errors import Invalid
from hansa.messages.clusters import StatusChange

MEMBER = record("visby")
CORDONED = replace(MEMBER, cordoned=True)
DRAINS = replace(MEMBER, cordoned=True, wanted="drain")
LEAVES = replace(MEMBER, cordoned=True, wanted="leave", state="leaving")


@pytest.mark.parametrize(
    ("before", "asked", "wanted", "cordoned"),
    [
        (MEMBER, {"cordoned": True}, "member", True),
        (CORDONED, {"cordoned": False}, "member", False),
        (MEMBER, {"wanted": "drain"}, "drain", True),
        (CORDONED, {"wanted": "drain", "cordoned": True}, "drain", True),
        (DRAINS, {"wanted": "member"}, "member", True),  # whether it is cordoned was not said
        (DRAINS, {"wanted": "member", "cordoned": False}, "member", False),
        (DRAINS, {"wanted": "leave"}, "leave", True),
        (MEMBER, {"wanted": "member", "cordoned": True}, "member", True),
    ],
)
def test_a_change_is_told_at_once(before: ClusterRecord, asked: dict[str, Any], wanted: str, cordoned: bool) -> None:
    new, kind, told = wanting.all_of(before, StatusChange(**asked), "Ann")
    assert (new.wanted, new.cordoned, new.desired) == (wanted, cordoned, NOW)
    assert kind
    assert told.endswith(", by Ann")


@pytest.mark.parametrize(
    ("before", "asked"),
    [
        (MEMBER, {}),
        (LEAVES, {}),
        (replace(MEMBER, state="left"), {}),
        (MEMBER, {"wanted": "member", "cordoned": False}),
        (CORDONED, {"cordoned": True}),
        (DRAINS, {"wanted": "drain"}),
        (DRAINS, {"cordoned": True}),
        (LEAVES, {"wanted": "leave"}),
        (LEAVES, {"cordoned": True}),
        (replace(MEMBER, state="left"), {"wanted": "leave"}),
    ],
)
def test_what_is_so_already_changes_nothing(before: ClusterRecord, asked: dict[str, Any]) -> None:
    assert wanting.all_of(before, StatusChange(**asked), "Ann") == (before, "", "")


@pytest.mark.parametrize(
    ("before", "asked", "error"),
    [
        (MEMBER, {"wanted": "drain", "cordoned": False}, Invalid),
        (MEMBER, {"wanted": "leave", "cordoned": False}, Invalid),
        (DRAINS, {"cordoned": False}, WrongState),  # the drain would go on, and nobody said it should end
        (LEAVES, {"cordoned": False}, WrongState),
        (LEAVES, {"wanted": "member"}, WrongState),
        (LEAVES, {"wanted": "drain"}, WrongState),
        (replace(MEMBER, state="pending"), {"wanted": "leave"}, WrongState),
        (replace(MEMBER, state="pending"), {"cordoned": True}, WrongState),
        (replace(MEMBER, state="left"), {"wanted": "drain"}, WrongState),
        (replace(MEMBER, kind="oscar"), {"wanted": "drain"}, WrongState),
        (replace(MEMBER, kind="oscar"), {"wanted": "leave"}, WrongState),
    ],
)
def test_what_cannot_be(before: ClusterRecord, asked: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        wanting.all_of(before, StatusChange(**asked), "Ann")


def test_taking_a_cordon_away_by_its_own_name_ends_a_drain() -> None:
    assert wanting.uncordon(DRAINS, "Ann")[0] == replace(MEMBER, desired=NOW)
