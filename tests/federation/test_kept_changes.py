"""Shares of what is kept: as much as there is room for, and nobody loses because somebody else told much."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.federation.kept_changes import share


@pytest.mark.parametrize(
    ("counts", "keep", "found"),
    [
        ([], 100, 100),
        ([50, 50], 100, 100),
        ([500], 100, 100),
        ([5, 500], 100, 95),
        ([5, 500, 500], 100, 47),
        ([20] * 50, 100, 10),
    ],
)
def test_shares(counts: list[int], keep: int, found: int) -> None:
    assert share(counts, keep) == found


@given(st.lists(st.integers(1, 50), max_size=8), st.integers(1, 10**6))
def test_one_who_tells_without_end_takes_nothing_from_the_others(others: list[int], flood: int) -> None:
    keep = 500
    found = share([*others, flood], keep)
    assert found >= max(others, default=0)
    assert sum(min(one, found) for one in (*others, flood)) <= keep
