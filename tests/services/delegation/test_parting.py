"""What becomes of a job at a member that was removed, when its outputs are on their way already?"""

from types import SimpleNamespace
from typing import Any, Literal, cast

from hansa.services import AwayJob, Outcome, Service
from hansa.services.delegation.following import Follower
from hansa.services.delegation.ledger import SERVICE, Delegation

DELIVERING = Delegation("one", 1, "away", "visby", "gray", "https://visby", "p", 1, {SERVICE: "gray"}, 0.0)


class Removed:
    """A room whose service has no members any more; the clock is moved by hand."""

    def __init__(self, status: Literal["Running", "Succeeded"]) -> None:
        self.time, self.ended = 1000.0, list[Outcome]()

        async def nothing(*_: Any, **__: Any) -> Any:
            return None

        async def away_job(*_: Any) -> AwayJob:
            return AwayJob(status)

        async def away_log(*_: Any, **__: Any) -> str:
            return ""

        async def end(_job: str, outcome: Outcome, _now: float) -> bool:
            self.ended.append(outcome)
            return True

        peer = SimpleNamespace(away_job=away_job, away_log=away_log, cancel=nothing)
        self.room = SimpleNamespace(
            clock=SimpleNamespace(now=lambda: self.time),
            records=SimpleNamespace(get=lambda _: SimpleNamespace(service=Service(name="gray"))),
            delegations=SimpleNamespace(heard=nothing, finished=nothing),
            jobs=SimpleNamespace(end=end, get=nothing),
            logs=SimpleNamespace(keep=nothing),
            away_keys=SimpleNamespace(end=nothing),
            peers=SimpleNamespace(find=lambda *_: peer),
        )

    def follower(self) -> Follower:
        return Follower(cast(Any, self.room), lost_after=60.0)


async def test_outputs_that_come_are_taken() -> None:
    removed = Removed("Succeeded")
    await removed.follower().follow(DELIVERING)
    assert [one.succeeded for one in removed.ended] == [True]


async def test_they_are_not_waited_for_without_end() -> None:
    removed = Removed("Running")
    follower = removed.follower()
    await follower.follow(DELIVERING)
    assert removed.ended == []
    removed.time += 61
    await follower.follow(DELIVERING)
    assert [(one.succeeded, "no member any more" in one.reason) for one in removed.ended] == [(False, True)]
