"""States and their reasons."""

from dataclasses import replace

import pytest

from hansa.federation import ClusterRecord, lifecycle
from hansa.federation.detector import ALIVE, Liveness
from hansa.messages.clusters import Facts, State
from hansa.messages.members import Applied, Health

RECORD = ClusterRecord("visby", "hansa", "ready", 1.0, "", 1, 1.0, Facts())
DEAD = Liveness("dead", "no heartbeat for 16 s, 3 missed of 5 s")
SUSPECTED = Liveness("suspected", "no heartbeat for 11 s, 2 missed of 5 s")
WELL, NOTHING = Health(), Applied()


def state(
    record: ClusterRecord, liveness: Liveness = ALIVE, health: Health = WELL, applied: Applied = NOTHING
) -> State:
    return lifecycle.judge(record, liveness, health, applied).state


def test_what_is_heard_and_complete_is_ready() -> None:
    assert state(RECORD) == "ready"
    assert state(replace(RECORD, state="unreachable")) == "ready"


def test_a_missing_part_silence_or_a_refused_configuration_degrade() -> None:
    missing = Health(missing=("object store: it does not answer",))
    assert lifecycle.judge(RECORD, ALIVE, missing, NOTHING).reason == "object store: it does not answer"
    assert state(RECORD, health=missing) == "degraded"
    assert state(RECORD, SUSPECTED) == "degraded"
    assert state(RECORD, applied=Applied(error="jobs.cpu: this machine has 2")) == "degraded"


@pytest.mark.parametrize("wanted", ["member", "drain", "leave"])
def test_silence_wins_over_what_is_wanted(wanted: str) -> None:
    assert state(replace(RECORD, wanted=wanted), DEAD) == "unreachable"  # type: ignore[arg-type]


def test_a_drain_tells_how_far_it_is() -> None:
    draining = replace(RECORD, wanted="drain")
    told = [
        lifecycle.judge(draining, ALIVE, WELL, applied).reason
        for applied in (NOTHING, Applied(running=2, waiting=1), Applied(drained=True))
    ]
    assert told == ["it was told to drain", "2 jobs run, 1 wait", "drained: nothing of it runs any more"]
    assert state(replace(RECORD, wanted="leave")) == "leaving"


@pytest.mark.parametrize("kept", ["pending", "left"])
def test_only_somebody_s_action_ends_these(kept: State) -> None:
    assert state(replace(RECORD, state=kept), DEAD) == kept
    assert state(replace(RECORD, state=kept)) == kept


def test_of_silence_only_the_beginning_is_news() -> None:
    gone = replace(RECORD, state="unreachable", reason="no heartbeat for 16 s, 3 missed of 5 s")
    assert not lifecycle.is_news(gone, lifecycle.Judgement("unreachable", "no heartbeat for 17 s, 3 missed of 5 s"))
    assert lifecycle.is_news(gone, lifecycle.Judgement("ready", "it reports"))
    draining = replace(RECORD, state="draining", reason="2 jobs run, 1 wait")
    assert lifecycle.is_news(draining, lifecycle.Judgement("draining", "1 jobs run, 0 wait"))
