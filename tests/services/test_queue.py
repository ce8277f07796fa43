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


def test_one_that_waiting_does_not_help_is_passed_by() -> None:
    queue = Queue()
    queue.extend([waiting("whole machine", "greedy", cpu=10), waiting("small", "b", cpu=1)])
    taken = queue.take(lambda w: True, lambda w: w.cpu < 5, lambda w: w.cpu < 10)
    assert taken is not None
    assert taken.name == "small"
    assert "whole machine" in queue


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


def everything(queue: Queue) -> list[str]:
    taken = iter(lambda: queue.take(lambda w: True, lambda w: True), None)
    return [one.name for one in taken]


def test_a_paused_job_keeps_its_place_and_holds_nobody_up() -> None:
    queue = Queue()
    queue.extend([waiting("1"), waiting("2"), waiting("3", "b")])
    assert queue.pause("1")
    assert not queue.pause("1")  # somebody has it already
    assert queue.is_paused("1")
    assert [one.name for one in queue.snapshot()] == ["2", "3"]
    taken = queue.take(lambda w: True, lambda w: True)
    assert taken is not None
    assert taken.name == "2"
    queue.resume("1")
    assert [one.name for one in queue.snapshot()] == ["1", "3"]
    assert everything(queue) == ["1", "3"]


def test_what_does_not_wait_cannot_be_paused() -> None:
    queue = Queue()
    assert not queue.pause("never")
    queue.add(waiting("1"))
    assert everything(queue) == ["1"]
    assert not queue.pause("1")
    queue.resume("never")


def test_a_paused_job_that_is_removed_is_gone_for_good() -> None:
    queue = Queue()
    queue.extend([waiting("1"), waiting("2")])
    queue.pause("1")
    assert queue.remove("1")
    queue.resume("1")
    assert everything(queue) == ["2"]
    assert len(queue) == 0


def test_one_that_comes_back_while_its_pause_lasts_waits_once() -> None:
    queue = Queue()
    queue.add(waiting("1"))
    queue.pause("1")
    queue.add(waiting("1"))
    assert queue.snapshot() == []
    queue.resume("1")
    assert everything(queue) == ["1"]


def test_one_that_left_and_came_back_waits_once_at_the_end() -> None:
    queue = Queue()
    queue.extend([waiting("1"), waiting("2")])
    queue.remove("1")  # a member had it
    queue.add(waiting("1"))  # and lost it
    assert [one.name for one in queue.snapshot()] == ["2", "1"]
    assert len(queue) == 2
    assert everything(queue) == ["2", "1"]


def test_one_too_large_for_here_waits_only_for_members() -> None:
    queue = Queue()
    queue.add(waiting("large", cpu=99), elsewhere=True)
    queue.add(waiting("small"))
    assert [one.name for one in queue.snapshot()] == ["large", "small"]
    assert [one.name for one in queue.only_elsewhere()] == ["large"]
    assert everything(queue) == ["small"]
    assert len(queue) == 1
    assert queue.remove("large")
    assert queue.only_elsewhere() == []


STEPS = st.lists(st.tuples(st.sampled_from(["add", "pause", "resume", "remove", "take"]), st.integers(0, 5)))


@given(STEPS)
def test_any_steps_leave_each_job_once_in_the_order_it_came(steps: list[tuple[str, int]]) -> None:
    queue = Queue()
    known: list[str] = []
    paused: set[str] = set()
    for step, number in steps:
        name = str(number)
        match step:
            case "add":
                queue.add(waiting(name, owner="ab"[number % 2]))
                known += [name] if name not in known else []
            case "pause":
                assert queue.pause(name) == (name in known and name not in paused)
                paused |= {name} & set(known)
            case "resume":
                queue.resume(name)
                paused.discard(name)
            case "remove":
                assert queue.remove(name) == (name in known)
                known = [one for one in known if one != name]
            case "take":
                taken = queue.take(lambda w: True, lambda w: True)
                free = [one for one in known if one not in paused]
                assert (taken.name if taken else None) == (free[0] if free else None)
                known = [one for one in known if not taken or one != taken.name]
        assert [one.name for one in queue.snapshot()] == [one for one in known if one not in paused]
        assert len(queue) == len(known)


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
