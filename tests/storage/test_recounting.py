"""Is a bucket counted again only where that can change something, and not without pause?"""

import pytest

from hansa.storage import Contents
from hansa.storage.recounting import Came, Counted, doubtful

KIB = Contents(1024, 1, True)


@pytest.mark.parametrize(
    ("contents", "came", "limit", "full", "wanted"),
    [
        (None, Came(), 10**9, False, True),  # never counted
        (None, Came(), 10**9, True, True),
        (KIB, Came(), 2048, False, False),
        (KIB, Came(1023, 1), 2048, False, False),
        (KIB, Came(1024, 1), 2048, False, True),
        (KIB, Came(0, 10_000), 2048, False, True),  # names take room too
        (KIB, Came(), 1024, False, True),  # the limit was lowered
        (KIB, Came(), 1024, True, False),
        (KIB, Came(5000, 9), 1024, True, False),  # what comes to a full one makes it no emptier
        (KIB, Came(), 2048, True, True),  # the limit was raised
        (Contents(0, 0, False), Came(), 10**9, True, False),  # a larger limit is none for what cannot be counted
    ],
)
def test_only_where_the_truth_may_be_beyond_the_limit(
    contents: Contents | None, came: Came, limit: int, full: bool, wanted: bool
) -> None:
    assert doubtful(contents, came, limit, full) is wanted


def test_who_took_long_rests_long_but_not_for_ever() -> None:
    assert Counted(KIB, 100.0, 0.01).rested(full=True) == pytest.approx(100.04)
    assert Counted(KIB, 100.0, 13.0).rested(full=True) == 152.0
    assert Counted(KIB, 100.0, 13.0).rested(full=False) == 113.0  # people write meanwhile
    assert Counted(KIB, 100.0, 120.0).rested(full=True) == 160.0


def test_a_sweep_passes_by_what_took_long_a_short_while_ago() -> None:
    assert Counted(KIB, 100.0, 0.01).stale(101.0)
    assert not Counted(KIB, 100.0, 13.0).stale(160.0)
    assert Counted(KIB, 100.0, 13.0).stale(360.0)
    assert Counted(KIB, 100.0, 120.0).stale(700.0)
