"""Is every open job counted to its owner once, from before it is written down until it has ended?"""

import asyncio
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.identity import ADMIN_UID
from hansa.services import Backlog, OwnerQueueFull, Share
from hansa.services.backlog import Held

TWO = Share(2, 1000)


def enter(backlog: Backlog, name: str, owner: str = "alice", size: int = 10, most: Share = TWO) -> None:
    with backlog.entering(name, owner, size, most):
        pass


def test_an_owner_who_has_enough_is_refused_and_nobody_else() -> None:
    backlog = Backlog()
    enter(backlog, "a")
    enter(backlog, "b")
    with pytest.raises(OwnerQueueFull, match="2 jobs of yours"):
        enter(backlog, "c")
    enter(backlog, "d", owner="bob")
    for number in range(10):
        enter(backlog, f"admin-{number}", owner=ADMIN_UID)
    backlog.leave("a")
    enter(backlog, "c")


def test_bodies_count_by_their_size() -> None:
    backlog = Backlog()
    most = Share(100, 1000)
    enter(backlog, "a", size=600, most=most)
    with pytest.raises(OwnerQueueFull, match="the inputs of your open jobs"):
        enter(backlog, "b", size=500, most=most)
    enter(backlog, "c", size=400, most=most)


def test_a_first_job_is_taken_however_small_the_share() -> None:
    enter(Backlog(), "a", size=5000, most=Share(1, 1))


def test_many_at_once_do_not_pass_on_an_old_count() -> None:
    """All of them ask before any of them is written down."""
    backlog = Backlog()

    async def submit(name: str, gate: asyncio.Event) -> bool:
        try:
            with backlog.entering(name, "alice", 1, TWO):
                await gate.wait()
        except OwnerQueueFull:
            return False
        return True

    async def all_together() -> list[bool]:
        gate = asyncio.Event()
        tasks = [asyncio.create_task(submit(f"job-{number}", gate)) for number in range(50)]
        await asyncio.sleep(0)
        gate.set()
        return await asyncio.gather(*tasks)

    assert sum(asyncio.run(all_together())) == 2


def test_the_same_job_twice_counts_once_and_passes_a_full_share() -> None:
    backlog = Backlog()
    enter(backlog, "a")
    enter(backlog, "b")
    enter(backlog, "a")
    assert backlog.held("alice") == Held(2, 20)


def test_whoever_was_refused_is_told_of_room() -> None:
    told: list[int] = []
    backlog = Backlog(on_room=lambda: told.append(1))
    for name in ("a", "b"):
        enter(backlog, name)
    backlog.leave("b")
    assert told == []  # nobody had asked for it
    enter(backlog, "b")
    with pytest.raises(OwnerQueueFull):
        enter(backlog, "c")
    backlog.leave("a")
    backlog.leave("a")
    assert told == [1]


async def test_settling_forgets_what_is_not_there_and_keeps_what_is_under_way() -> None:
    backlog = Backlog()
    enter(backlog, "lost")
    found: Mapping[str, tuple[str, int]] = {"kept": ("bob", 7)}

    async def read() -> Mapping[str, tuple[str, int]]:
        enter(backlog, "late", most=Share(9, 1000))  # accepted after the database was asked
        return found

    with backlog.entering("under-way", "alice", 1, TWO):
        await backlog.settle(read)
    assert backlog.held("bob") == Held(1, 7)
    assert backlog.held("alice") == Held(2, 11)
    await backlog.settle(lambda: asyncio.sleep(0, found))
    assert backlog.held("alice") == Held()


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.sampled_from("ab"), st.integers(0, 50))))
def test_what_is_held_is_the_sum_of_what_is_open(steps: list[tuple[bool, int, str, int]]) -> None:
    backlog, still_open = Backlog(), dict[str, tuple[str, int]]()
    for enters, number, owner, size in steps:
        name = f"job-{number}"
        if enters:
            backlog.add(name, owner, size)
            still_open.setdefault(name, (owner, size))
        else:
            backlog.leave(name)
            still_open.pop(name, None)
    for owner in "ab":
        mine = [size for whose, size in still_open.values() if whose == owner]
        assert backlog.held(owner) == Held(len(mine), sum(mine))
