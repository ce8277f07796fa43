"""Is a federation drawn as people sketch it?"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hansa.entrypoints.cli.topology_drawing import draw, key


def member(cluster: str, **more: Any) -> dict[str, Any]:
    return {"type": "oscar", "cluster_id": cluster, "service_name": "gray", "priority": 0, **more}


def test_a_star() -> None:
    assert draw("gray", "star", [member("visby"), member("riga", priority=2)], {}).splitlines() == [
        "gray",
        "├─ visby/gray",
        "└─ riga/gray  (priority 2)",
    ]


def test_a_tree_hangs_children_on_their_parents_named_either_way() -> None:
    members = [
        member("visby"),
        member("riga", parent="visby"),
        member("narva", parent="riga/gray"),
        member("tallinn", parent="visby/gray"),
        member("danzig"),
    ]
    assert draw("gray", "tree", members, {}).splitlines() == [
        "gray",
        "├─ visby/gray",
        "│  ├─ riga/gray",
        "│  │  └─ narva/gray",
        "│  └─ tallinn/gray",
        "└─ danzig/gray",
    ]


def test_what_is_wrong_stands_beside() -> None:
    state: dict[str, dict[str, object]] = {
        "visby/gray": {"reachable": True, "in_sync": True, "trouble": ""},
        "riga/gray": {"reachable": True, "in_sync": False, "trouble": "it runs another definition"},
        "narva/gray": {"reachable": False, "in_sync": False, "last_seen": "2026-01-02T03:04:05Z", "trouble": "refused"},
        "danzig/gray": {"reachable": False, "in_sync": False, "last_seen": None, "trouble": ""},
    }
    lines = draw("gray", "star", [member(key.split("/")[0]) for key in state], state).splitlines()
    assert lines[1:] == [
        "├─ visby/gray  (in sync)",
        "├─ riga/gray  (out of sync; it runs another definition)",
        "├─ narva/gray  (not reachable, last seen 2026-01-02T03:04:05Z; refused)",
        "└─ danzig/gray  (not reachable)",
    ]


def test_what_a_member_says_makes_no_line_of_its_own() -> None:
    forged = "no\n└─ riga/gray  (in sync)\x85├─ \u2028\u202egnp\x9b2J"
    state = {"visby/gray": {"reachable": False, "trouble": forged}}
    _, line = draw("gray", "star", [member("visby")], state).splitlines()
    assert line == "└─ visby/gray  (not reachable; no └─ riga/gray  (in sync)�├─ ��gnp�2J)"


def test_a_mesh_and_no_delegation_are_said_in_words() -> None:
    assert draw("gray", "mesh", [], {}) == "gray (mesh: everybody hands jobs to everybody)"
    assert draw("gray", "none", [], {}) == "gray (delegation is off)"


def test_an_endpoint_is_shown_by_its_address() -> None:
    assert draw("gray", "star", [{"type": "Endpoint", "url": "https://x/y"}], {}).endswith("└─ https://x/y")


NAMES = st.sampled_from(["a", "b", "c", "d"])


@given(st.lists(st.builds(member, NAMES, parent=st.one_of(st.just(""), NAMES)), max_size=5))
def test_every_member_is_drawn_once_whatever_the_parents(members: list[dict[str, Any]]) -> None:
    """Rings and unknown parents too: a drawing that leaves somebody out would mislead."""
    lines = draw("gray", "tree", members, {}).splitlines()[1:]
    assert sorted(line.split("─ ")[1].split("  ")[0] for line in lines) == sorted({key(one) for one in members})
