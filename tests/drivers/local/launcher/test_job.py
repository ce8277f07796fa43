"""Does a job end, whatever is said of it while it ends?"""

import time
from types import SimpleNamespace
from typing import Any

from hansa.drivers.local.launcher import job as jobs


class Full:
    """A cgroup in which something is left for ever."""

    kills = 0

    def kill(self) -> None:
        self.kills += 1

    def remove(self) -> bool:
        return False

    def oom_kills(self) -> int:
        return 0

    def cpu_seconds(self) -> float:
        return 0.0


def started(group: Any, *, hold: bool = False) -> jobs.Job:
    spare: Any = SimpleNamespace(group=group, pid=2**30, employ=lambda *_: None)  # which no process has
    order: Any = SimpleNamespace(id="one", network="none", hold=hold, seconds=60.0)
    setting: Any = SimpleNamespace(root=True)
    return jobs.Job(setting, order, spare, 1, fds=SimpleNamespace())  # type: ignore[arg-type]


def test_who_is_told_to_kill_it_again_and_again_does_not_put_off_its_end() -> None:
    """The one who looks at its disk tells of it until it has ended."""
    group = Full()
    job = started(group)
    job.main_process_ended(0)
    assert job.tick() is None
    for _ in range(10):
        job.kill("disk")
        assert job.due < time.monotonic() + 0.1
    job._gone -= 60  # all the time there is for what is left
    ended = job.tick()
    assert ended is not None
    assert (ended.code, ended.reason, ended.clean) == (0, "exit", False)


def test_one_that_is_killed_is_killed_until_it_is_gone() -> None:
    group = Full()
    job = started(group)
    job.kill("disk")
    job.due = 0.0
    assert job.tick() is None
    assert group.kills == 2
    job.main_process_ended(9)
    job._gone -= 60
    ended = job.tick()
    assert ended is not None
    assert (ended.code, ended.reason) == (None, "disk")


def test_letting_a_held_one_go_does_not_put_off_its_end() -> None:
    """Whoever lets it go may not know yet that it died."""
    job = started(Full(), hold=True)
    job.main_process_ended(9)
    gone = job._gone
    job.release()
    assert job.due == gone
    assert job.tick() is None
    job._gone -= 60
    ended = job.tick()
    assert ended is not None
    assert (ended.code, ended.reason) == (137, "exit")
