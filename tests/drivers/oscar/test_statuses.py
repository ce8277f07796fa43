"""Is a status read in both shapes, and does no lie get past as a strange number?"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.drivers.oscar import statuses
from hansa.drivers.oscar.calls import Answer, Question
from hansa.services import node_front, peers

_GI = 2**30


def answer(document: Any) -> Answer:
    asked = Question("cluster visby", "GET", "http://127.0.0.1/system/status", True, 1.0, 1000)
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return Answer(asked, 200, "application/json", body)


def current(nodes: Any, **metrics: Any) -> dict[str, Any]:
    return {"cluster": {"nodes_count": 2, "metrics": metrics, "nodes": nodes}, "oscar": {}, "minio": {}}


def test_todays_shape() -> None:
    nodes = [
        {"name": "a", "cpu": {"capacity_cores": 4000, "usage_cores": 100, "request_cores": 1500},
         "memory": {"capacity_bytes": 8 * _GI, "request_bytes": _GI}, "status": "Ready"},
        {"name": "b", "cpu": {"capacity_cores": 2000}, "memory": {"capacity_bytes": _GI}},
        {"name": "c", "cpu": {"capacity_cores": 9000}, "memory": {"capacity_bytes": _GI}, "status": "NotReady"},
    ]  # fmt: skip
    seen = statuses.read(
        answer(
            current(
                nodes,
                cpu={"total_free_cores": 5900, "max_free_on_node_cores": 3900},
                memory={"total_free_bytes": 9 * _GI},
            )
        ),
        0.25,
    )
    assert seen == peers.PeerStatus(
        seconds=0.25,
        nodes=(peers.NodeRoom(2500, 7 * _GI),),  # whatever fits the other fits this one
        nodes_count=2,
        free_cpu=5900,
        free_memory=9 * _GI,
        largest_free_cpu=3900,
        capacity_cpu=15000,
        capacity_memory=10 * _GI,
        nodes_ready=2,
    )


@pytest.mark.parametrize("nodes", [None, []])
def test_no_nodes(nodes: Any) -> None:
    seen = statuses.read(answer(current(nodes)), 0.0)
    assert (seen.nodes, seen.capacity_cpu, seen.free_cpu) == ((), 0, 0)


def test_many_nodes_are_counted_and_few_are_kept() -> None:
    """Each waiting job is held against those that are kept, and they stay in memory for each member of each service."""
    stairs = [{"cpu": {"capacity_cores": 1 + k}, "memory": {"capacity_bytes": 8_000 - k}} for k in range(8_000)]
    small = [{"cpu": {"capacity_cores": 1}, "memory": {"capacity_bytes": 1}}] * 2_000
    seen = statuses.read(answer(current([*small, *stairs])), 0.0)
    assert len(seen.nodes) == node_front.MOST
    assert seen.nodes_ready == 10_000
    assert seen.capacity_cpu == 2_000 + sum(range(1, 8_001))
    assert max(node.cpu for node in seen.nodes) == max(node.memory for node in seen.nodes) == 8_000


def test_the_flat_shape_of_oscar_3() -> None:
    detail = [{"nodeName": "a", "cpuCapacity": "4000", "cpuUsage": "1000", "memoryCapacity": "100", "memoryUsage": "1"}]
    flat = {"numberNodes": 1, "cpuFreeTotal": 3000, "cpuMaxFree": 3000, "memoryFreeTotal": 99, "memoryMaxFree": 99}
    whole = statuses.read(answer({**flat, "detail": detail}), 0.0)
    assert whole.nodes == (peers.NodeRoom(3000, 99),)
    assert (whole.free_cpu, whole.largest_free_cpu, whole.capacity_cpu, whole.nodes_count) == (3000, 3000, 4000, 1)
    assert statuses.read(answer(flat), 0.0).nodes == (peers.NodeRoom(3000, 99),)
    assert statuses.read(answer(flat), 0.0).nodes_ready == whole.nodes_ready == 1


@pytest.mark.parametrize(
    ("lie", "taken"),
    [(-5, 0), (10**30, 2**53), (1e300, 2**53), (12.9, 12), ("700", 700), ("-3", 0), (None, 0), ("inf", 2**53)],
)
def test_a_figure_that_cannot_be_is_cut(lie: Any, taken: int) -> None:
    seen = statuses.read(answer(current([], cpu={"total_free_cores": lie})), 0.0)
    assert seen.free_cpu == taken


def test_negative_requests_make_no_room() -> None:
    node = {"cpu": {"capacity_cores": 1000, "request_cores": -9000}, "memory": {}}
    assert statuses.read(answer(current([node])), 0.0).nodes == (peers.NodeRoom(1000, 0),)
    full = {"cpu": {"capacity_cores": 1000, "request_cores": 9000}, "memory": {}}
    assert statuses.read(answer(current([full])), 0.0).nodes == (peers.NodeRoom(0, 0),)


@pytest.mark.parametrize(
    "nonsense",
    [
        b"", b"<html>", b"[]", b"null", b'"x"', b"{}", b"[" * 100_000, b'{"cluster":NaN}', b"\xff\xfe",
        {"cluster": []}, {"cluster": "full"}, current("many"), current(["a"]), current([{"cpu": 4}]),
        current([], cpu={"total_free_cores": "plenty"}), current([], cpu={"total_free_cores": True}),
        current([], cpu={"total_free_cores": [1]}), current([], cpu={"total_free_cores": "nan"}), current([], cpu=7),
        {"numberNodes": {}}, {"numberNodes": 1, "detail": {"a": 1}},
    ],
)  # fmt: skip
def test_what_is_no_status_is_refused(nonsense: Any) -> None:
    with pytest.raises(peers.PeerRefused):
        statuses.read(answer(nonsense), 0.0)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["nodes", "metrics", "cpu", "memory", "total_free_cores", "capacity_cores", "nodes_count"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(_JSON)
def test_any_json_gives_plain_numbers_or_a_refusal(document: Any) -> None:
    for shape in ({"cluster": document}, {"numberNodes": document, "detail": document}):
        try:
            seen = statuses.read(answer(shape), 0.1)
        except peers.PeerRefused:
            continue
        figures = (seen.free_cpu, seen.free_memory, seen.largest_free_cpu, seen.nodes_count)
        assert all(0 <= figure <= 2**53 for figure in figures)
        assert all(room.cpu >= 0 and room.memory >= 0 for room in seen.nodes)
