"""Does one caller with many addresses count as one?"""

import pytest

from hansa.kernel import addresses


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("", "", True),
        ("unix", "other", False),
    ],
)
def test_who_counts_as_one(one: str, other: str, same: bool) -> None:
    assert (addresses.counted_as(one) == addresses.counted_as(other)) is same


def test_a_long_name_takes_no_memory() -> None:
    assert len(addresses.counted_as("x" * 10_000)) <= 64
