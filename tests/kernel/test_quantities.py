"""Quantities are exact, and everything else is refused with a hint."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.kernel import quantities


@pytest.mark.parametrize(
    ("text", "cores"), [("0.2", 200), ("500m", 500), ("1", 1000), ("2e-1", 200), ("1.5", 1500), ("1u", 1), ("100n", 1)]
)
def test_cpu_is_whole_millicores_rounded_up(text: str, cores: int) -> None:
    assert quantities.millicores(text) == cores


@pytest.mark.parametrize(
    ("text", "count"), [("256Mi", 2**28), ("1Gi", 2**30), ("1G", 10**9), ("1k", 1000), ("17", 17), ("0.5Ki", 512)]
)
def test_sizes_are_whole_bytes(text: str, count: int) -> None:
    assert quantities.size(text) == count


@pytest.mark.parametrize("text", ["", "abc", "-1", "1GiB", "1 Gi", "1e999", "9" * 5000, "1E99", "0x10", "١"])
def test_everything_else_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(quantities.BadQuantity) as caught:
        quantities.millicores(text)
    assert caught.value.hint


@given(st.integers(0, 2**50))
def test_a_shown_size_is_within_five_percent(count: int) -> None:
    shown = quantities.size(quantities.show_size(count))
    assert abs(shown - count) <= max(1, count * 0.05)


@given(st.text(max_size=40))
def test_no_text_makes_it_fall_over(text: str) -> None:
    with contextlib.suppress(quantities.BadQuantity):
        assert quantities.size(text) >= 0
