"""Jobs start in order, never over what is free, and nobody's quota holds up the others."""

from hypothesis import given
from hypothesis import strategies as st

from hansa.resources import Ledger, Needs
from hansa.services import Waiting
from hansa.services.queue import Queue


def waiting(name: str, owner: str = "a", cpu: int = 1) -> Waiting:
    return Waiting(name, "svc", owner, cpu, 1)


def test_first_come_first_served_across_owners() -> None:
    queue = Queue()
    queue.extend([waiting("1", "a"), waiting("2", "b"), waiting("3", "a")])
    taken = [queue.take(lambda w: True, lambda w: True) for _ in range(3)]
    assert [one.name for one in taken if one] == ["1", "2", "3"]
    assert queue.take(lambda w: True, lambda w: True) is None


def test_a_large_job_is_not_passed_by() -> None:
    queue = Queue()
    queue.extend([waiting("large", cpu=10), waiting("small", cpu=1)])
    assert queue.take(lambda w: True, lambda w: w.cpu < 5) is None
    assert len(queue) == 2


def test_a_used_up_quota_holds_up_only_its_owner() -> None:
    queue = Queue()
    queue.extend([waiting("1", "greedy"), waiting("2", "b")])
    taken = queue.take(lambda w: w.owner != "greedy", lambda w: True)
    assert taken is not None
    assert taken.name == "2"
    assert "1" in queue


def test_a_removed_job_never_starts() -> None:
    queue = Queue()
    queue.extend([waiting("1"), waiting("2")])
    assert queue.remove("1")
    assert not queue.remove("1")
    taken = queue.take(lambda w: True, lambda w: True)
    assert taken is not None
    assert taken.name == "2"


@given(st.lists(st.tuples(st.integers(1, 8), st.sampled_from("abc")), max_size=40), st.integers(8, 20))
def test_never_over_committed_and_none_forgotten(jobs: list[tuple[int, str]], capacity: int) -> None:
    queue, ledger = Queue(), Ledger(capacity, 10**6)
    queue.extend(waiting(str(n), owner, cpu) for n, (cpu, owner) in enumerate(jobs))
    started: list[str] = []
    running: list[str] = []
    while len(started) < len(jobs):
        taken = queue.take(lambda w: True, lambda w: ledger.hold(w.name, Needs(w.cpu, w.memory)))
        assert ledger.promised.cpu <= capacity
        if taken is None:
            ledger.release(running.pop(0))
        else:
            started.append(taken.name)
            running.append(taken.name)
    assert started == [str(n) for n in range(len(jobs))]
