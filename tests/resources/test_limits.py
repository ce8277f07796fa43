"""Limits are exact, and changes to them are checked as a whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.kernel import quantities
from hansa.kernel.errors import Invalid
from hansa.kernel.quota import QuotaSettings
from hansa.resources import Limits, QuotaChange, exact_size

DEFAULT = Limits.of(QuotaSettings())


def test_the_defaults_are_oscars() -> None:
    """But for disk: each of the ten small jobs that the share of processors lets run at once holds a gibibyte."""
    assert (DEFAULT.cpu, DEFAULT.memory, DEFAULT.ephemeral_storage, DEFAULT.gpu) == (2000, 2 * 2**30, 10 * 2**30, 0)
    assert (DEFAULT.volumes, DEFAULT.disk) == (5, 7 * 2**30)
    assert (DEFAULT.min_disk_per_volume, DEFAULT.max_disk_per_volume) == (200 * 2**20, 5 * 2**30)
    assert (DEFAULT.buckets, DEFAULT.storage_per_bucket) == (5, 5 * 2**30)


def test_a_change_touches_what_it_names() -> None:
    after = QuotaChange(cpu="500m", gpu="1", volumes="9").applied_to(DEFAULT)
    assert after.difference(DEFAULT) == {"cpu": 500, "gpu": 1, "volumes": 9}
    assert DEFAULT.changed({"cpu": 500, "from_a_newer_version": 1}).cpu == 500


@pytest.mark.parametrize(
    "change",
    [
        QuotaChange(),
        QuotaChange(gpu="1"),
        QuotaChange(cpu="  "),
        QuotaChange(cpu="many"),
        QuotaChange(cpu="-1"),
        QuotaChange(volumes="1.5"),
        QuotaChange(cpu="1", gpu="500m"),
        QuotaChange(memory="1e99"),
        QuotaChange(min_disk_per_volume="6Gi"),
        QuotaChange(max_disk_per_volume="1"),
    ],
)
def test_odd_changes_are_refused(change: QuotaChange) -> None:
    with pytest.raises(Invalid):
        change.applied_to(DEFAULT)


@given(st.integers(min_value=0, max_value=2**62))
def test_a_size_in_words_means_exactly_the_same(count: int) -> None:
    assert quantities.size(exact_size(count)) == count


def test_sizes_are_short_where_they_can_be() -> None:
    assert [exact_size(size) for size in (0, 1000, 7 * 2**30, 1536 * 2**20)] == ["0", "1000", "7Gi", "1536Mi"]
