"""Each policy against figures worked out by hand; every member is ranked or refused with a reason."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.resources import Needs
from hansa.services.delegation.policies import Candidate, behind_others, rank
from hansa.services.peers import NodeRoom, PeerHistory, PeerStatus
from hansa.services.service import Member

MI = 2**20
SMALL = Needs(500, 256 * MI)


def status(
    cpu: int, memory: int = 4096 * MI, *, nodes: int = 1, seconds: float = 0.05, capacity: int = 16_000
) -> PeerStatus:
    return PeerStatus(
        seconds=seconds,
        nodes=tuple(NodeRoom(cpu // nodes, memory // nodes) for _ in range(nodes)),
        nodes_count=nodes,
        free_cpu=cpu,
        free_memory=memory,
        largest_free_cpu=cpu // nodes,
        capacity_cpu=capacity,
        capacity_memory=8192 * MI,
    )


def member(cluster: str, priority: int = 0) -> Member:
    return Member(type="oscar", cluster_id=cluster, service_name="gray", priority=priority)


def names(ranking: object) -> list[str]:
    return [one.cluster_id for one in ranking.order]  # type: ignore[attr-defined]


def test_static_goes_by_priority_and_keeps_the_users_order_in_ties() -> None:
    ranking = rank("static", [Candidate(member("c", 1)), Candidate(member("a", 0)), Candidate(member("b", 1))], SMALL)
    assert names(ranking) == ["a", "c", "b"]


def test_an_empty_policy_is_static() -> None:
    assert names(rank("", [Candidate(member("b", 2)), Candidate(member("a", 1))], SMALL)) == ["a", "b"]


@pytest.mark.parametrize(
    ("free", "priority"), [(0, 100), (500, 99), (8000, 75), (16_000, 50), (32_000, 0), (99_000, 0)]
)
def test_load_based_maps_free_cpu_to_priorities(free: int, priority: int) -> None:
    big = PeerStatus(0.1, (NodeRoom(100_000, 2**40),), 1, free, 2**40, free, 100_000, 2**40)
    scores = rank("load-based", [Candidate(member("a"), big)], SMALL).scores
    assert scores["a/gray"]["priority"] == priority


@pytest.mark.parametrize(
    ("cpu", "memory", "priority"),
    [(0.5, 0.5, 50), (1, 1, 0), (1 / 16, 1 / 64, 97), (0, 1, 100), (2, 2, 0), (-1, 1, 100)],
)
def test_the_relative_formula_with_upstreams_worked_values(cpu: float, memory: float, priority: int) -> None:
    one = PeerStatus(0.1, (NodeRoom(10**6, 2**40),), 1, int(cpu * 16_000), int(memory * 2**34), 0, 16_000, 2**34)
    scores = rank("load-based", [Candidate(member("a"), one)], SMALL, formula="relative").scores
    assert scores["a/gray"]["priority"] == priority


def test_load_based_never_picks_one_that_does_not_fit_and_says_why() -> None:
    candidates = [
        Candidate(member("full"), status(100)),
        Candidate(member("split"), status(800, nodes=4)),
        Candidate(member("thin"), status(8000, 100 * MI)),
        Candidate(member("dark"), None),
        Candidate(member("cut"), None, "it did not answer 3 times"),
        Candidate(member("good"), status(8000)),
    ]
    ranking = rank("load-based", candidates, SMALL)
    assert names(ranking) == ["good"]
    assert set(ranking.refused) == {"full/gray", "split/gray", "thin/gray", "dark/gray", "cut/gray"}
    assert "cpu" in ranking.refused["split/gray"]
    assert "memory" in ranking.refused["thin/gray"]


def test_what_was_handed_over_meanwhile_counts() -> None:
    busy = Candidate(member("busy"), status(16_000), in_flight=Needs(12_000, 0))
    assert names(rank("load-based", [busy, Candidate(member("idle"), status(8000))], SMALL)) == ["idle", "busy"]


def test_random_hits_at_least_two_clusters_in_ten() -> None:
    candidates = [Candidate(member(c), status(4000)) for c in "abc"]
    first = {names(rank("random", candidates, SMALL, chance=random.Random(seed)))[0] for seed in range(10)}
    assert len(first) >= 2


def test_random_by_weights() -> None:
    candidates = [Candidate(member(c), status(4000)) for c in "ab"]
    chance = random.Random(7)
    firsts = [names(rank("random", candidates, SMALL, weights={"a": 9.0}, chance=chance))[0] for _ in range(2000)]
    assert 0.85 < firsts.count("a") / 2000 < 0.95


def test_topsis_equals_a_hand_computed_table() -> None:
    # Three members that differ in free cpu (weight 65, benefit) 3, 4, 0 and latency (weight 1, cost) 0.3, 0.4, 0.
    # Norms are 5 and 0.5, so weighted free cpu is 39, 52, 0 and weighted latency 0.6, 0.8, 0; everything else is equal.
    rows = {"a": (3, 0.3), "b": (4, 0.4), "c": (0, 0.0)}
    candidates = [
        Candidate(
            member(name),
            PeerStatus(latency, (NodeRoom(10, 10),), 1, free, 10, free, 10, 10),
            history=PeerHistory(5.0, 0),
        )
        for name, (free, latency) in rows.items()
    ]
    by_hand = {}
    for name, (cpu, late) in {"a": (39.0, 0.6), "b": (52.0, 0.8), "c": (0.0, 0.0)}.items():
        best, worst = math.hypot(cpu - 52, late - 0.0), math.hypot(cpu - 0, late - 0.8)
        by_hand[name] = worst / (best + worst)
    ranking = rank("topsis", candidates, Needs(0, 0))
    assert names(ranking) == ["b", "a", "c"]
    for name, closeness in by_hand.items():
        assert ranking.scores[f"{name}/gray"]["closeness"] == pytest.approx(closeness, abs=1e-12)


def test_topsis_with_equal_members_and_empty_columns() -> None:
    same = [Candidate(member(c), status(1000)) for c in "abc"]
    ranking = rank("topsis", same, SMALL)
    assert names(ranking) == ["a", "b", "c"]
    assert all(not math.isnan(v) for scores in ranking.scores.values() for v in scores.values())


def test_topsis_prefers_quick_members_with_short_queues_when_the_rest_is_equal() -> None:
    candidates = [
        Candidate(member("slow"), status(4000), history=PeerHistory(100.0, 50)),
        Candidate(member("quick"), status(4000), history=PeerHistory(1.0, 0)),
    ]
    assert names(rank("topsis", candidates, SMALL)) == ["quick", "slow"]


numbers = st.integers(-(2**40), 2**40)


@given(
    st.sampled_from(["static", "random", "load-based", "topsis"]),
    st.lists(st.one_of(st.none(), st.tuples(numbers, numbers, numbers, numbers)), max_size=8),
    st.sampled_from(["free-cpu", "relative"]),
)
def test_every_member_is_ranked_or_refused_whatever_peers_say(
    policy: str, told: list[tuple[int, int, int, int] | None], formula: str
) -> None:
    candidates = []
    for index, figures in enumerate(told):
        seen = None
        if figures is not None:
            cpu, memory, capacity_cpu, capacity_memory = figures
            seen = PeerStatus(0.1, (NodeRoom(cpu, memory),), 1, cpu, memory, cpu, capacity_cpu, capacity_memory)
        candidates.append(Candidate(member(f"c{index}"), seen))
    ranking = rank(policy, candidates, SMALL, formula=formula)
    keys = [one.key for one in ranking.order]
    assert sorted([*keys, *ranking.refused]) == sorted(one.member.key for one in candidates)
    assert not set(keys) & set(ranking.refused)
    if policy != "static":
        for one in candidates:
            fits = (
                one.status is not None and one.status.nodes[0].cpu >= 500 and one.status.nodes[0].memory >= SMALL.memory
            )
            assert (one.member.key in keys) == fits


def test_who_lost_the_job_comes_after_those_who_did_not() -> None:
    """The oftener the later; nobody is left out, and the others keep their order."""
    found = rank("static", [Candidate(member(one, number)) for number, one in enumerate("abcd")], SMALL)
    assert names(behind_others(found, {"a/gray": 2, "b/gray": 1})) == ["c", "d", "b", "a"]
    assert names(behind_others(found, {})) == ["a", "b", "c", "d"]
