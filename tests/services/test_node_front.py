"""Of many nodes those are kept that decide; what is decided stays the same."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hansa.resources import Needs
from hansa.services import NodeRoom, PeerStatus, node_front
from hansa.services.delegation.policies import Candidate, Ranking, rank
from hansa.services.service import Member

_few = st.integers(0, 12)  # so that many are equal in one, or fit exactly
_some = st.one_of(_few, st.integers(0, 2**53))
_rooms = st.lists(st.builds(NodeRoom, _some, _some), max_size=40)
_needs = st.builds(Needs, _some, _some)


def decided(policy: str, nodes: tuple[NodeRoom, ...], needs: Needs, in_flight: Needs) -> Ranking:
    told = PeerStatus(0.1, nodes, 7, 9, 9, 9, 20, 20)
    members = (Member(type="oscar", cluster_id=name, service_name="gray") for name in ("visby", "lubeck"))
    first, other = (Candidate(member, told, in_flight=in_flight) for member in members)
    return rank(policy, [first, replace(other, status=replace(told, nodes=(NodeRoom(2**53, 2**53),)))], needs)


@given(st.sampled_from(["static", "load-based", "topsis"]), _rooms, _needs, st.builds(Needs, _few, _few))
def test_what_is_decided_is_the_same(policy: str, rooms: list[NodeRoom], needs: Needs, in_flight: Needs) -> None:
    """Who is asked, in which order, and in which words the others are refused."""
    kept = node_front.of(rooms)
    assert decided(policy, kept, needs, in_flight) == decided(policy, tuple(rooms), needs, in_flight)


@given(_rooms)
def test_none_that_is_kept_exceeds_another(rooms: list[NodeRoom]) -> None:
    kept = node_front.of(rooms)
    assert set(kept) <= set(rooms)
    assert not any(a.cpu >= b.cpu and a.memory >= b.memory for a in kept for b in kept if a is not b)


@given(st.integers(node_front.MOST - 2, 5 * node_front.MOST))
def test_of_too_many_the_largest_and_some_between_them_are_kept(count: int) -> None:
    rooms = [NodeRoom(1 + k, count - k) for k in range(count)]
    kept = node_front.of(rooms)
    assert len(kept) == len(set(kept)) == min(count, node_front.MOST)
    assert set(kept) <= set(rooms)
    assert {rooms[0], rooms[-1]} <= set(kept)
