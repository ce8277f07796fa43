"""Is the past packed without loss, and made coarser without inventing anything?"""

import itertools
import zlib

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hansa.federation import figures, samples
from hansa.federation.figures import FIELDS, Figures
from hansa.federation.samples import LEVELS, Row, merged, pack, rolled_up, shard_of, unpack, unpack_one
from hansa.messages.members import Totals

rows = st.tuples(*[st.integers(0, 2**60)] * len(FIELDS))
parts = st.lists(
    st.tuples(st.tuples(*[st.integers(0, 2**45)] * len(FIELDS)), st.sampled_from([60.0, 600.0])), min_size=1, max_size=6
)


@given(st.dictionaries(st.text(max_size=10), rows, max_size=5))
def test_what_is_packed_comes_back(told: dict[str, Figures]) -> None:
    body = pack(told)
    assert unpack(body) == told
    assert all(unpack_one(body, name) == one for name, one in told.items())
    assert unpack_one(body, "somebody else's name") is None


def test_sums_of_many_large_clusters_can_be_packed_and_told() -> None:
    whole = figures.total([(2**62,) * len(FIELDS)] * 10)
    assert unpack(pack({"": whole})) == {"": (2**62,) * len(FIELDS)}
    told = msgspec.json.encode(figures.totals(whole))
    assert msgspec.json.decode(told, type=Totals).cpu == 2**62


def test_a_version_that_knows_other_figures_is_understood() -> None:
    body = zlib.compress(msgspec.msgpack.encode({"fields": ["cpu", "wind"], "rows": {"a": [7, 3]}}))
    assert dict(zip(FIELDS, unpack(body)["a"], strict=True)) == {name: 7 if name == "cpu" else 0 for name in FIELDS}


@given(parts)
def test_a_coarser_sample_lies_within_the_finer_ones(given_parts: list[tuple[Figures, float]]) -> None:
    one = merged(given_parts)
    for name, value, column in zip(FIELDS, one, zip(*(part for part, _ in given_parts), strict=True), strict=True):
        assert min(column) <= value <= max(column), name
        if name in ("cpu", "memory", "nodes"):
            assert value == max(column)


def test_who_was_there_for_a_part_of_the_time_is_told_by_that_part() -> None:
    used = FIELDS.index("cpu_used")

    def figures(value: int) -> Figures:
        return tuple(value if place == used else 0 for place in range(len(FIELDS)))

    finer = [
        Row(60, 10, 3, pack({"a": figures(100), "b": figures(50)})),
        Row(60, 11, 3, pack({"a": figures(200)})),
    ]
    coarser = rolled_up(finer, 600, 1)
    assert (coarser.level, coarser.slot, coarser.shard) == (600, 1, 3)
    assert {name: one[used] for name, one in unpack(coarser.body).items()} == {"a": 150, "b": 50}


def test_levels_fit_into_each_other() -> None:
    for finer, coarser in itertools.pairwise(LEVELS):
        assert coarser.seconds % finer.seconds == 0
        assert finer.reach >= 2 * coarser.seconds  # time to catch up
        assert coarser.reach > finer.reach


@given(st.text(min_size=1, max_size=63))
def test_a_cluster_always_is_in_the_same_shard(cluster: str) -> None:
    assert 0 <= shard_of(cluster) < samples.SHARDS
    assert shard_of(cluster) == shard_of(cluster)


@given(st.dictionaries(st.sampled_from("abcd"), rows, max_size=4), st.sets(st.sampled_from("abcde")))
def test_who_is_left_out_is_not_in_it_and_the_others_are_as_they_were(told: dict[str, Figures], gone: set[str]) -> None:
    body = pack(told)
    kept = {name: one for name, one in told.items() if name not in gone}
    rest = samples.without(body, gone)
    if kept == told:
        assert rest is body
    else:
        assert (unpack(rest) if rest else {}) == kept


def test_figures_of_another_version_survive_that() -> None:
    body = zlib.compress(msgspec.msgpack.encode({"fields": ["cpu", "wind"], "rows": {"a": [7, 3], "b": [1, 2]}}))
    rest = msgspec.msgpack.decode(zlib.decompress(samples.without(body, {"a"})))
    assert rest == {"fields": ["cpu", "wind"], "rows": {"b": [1, 2]}}
