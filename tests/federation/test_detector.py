"""Silence and what it means."""

from hypothesis import given
from hypothesis import strategies as st

from hansa.federation import detector
from hansa.federation.detector import Attention, Limits

LIMITS = Limits(every=5.0, suspect_after=2, dead_after=3)
STEADY = [5.0] * 20


def test_a_steady_cluster_is_suspected_after_two_and_given_up_after_three() -> None:
    kinds = [detector.judge(silence, STEADY, LIMITS).kind for silence in (4.0, 9.9, 10.1, 14.9, 15.0)]
    assert kinds == ["alive", "alive", "suspected", "suspected", "dead"]


def test_the_reason_tells_the_figures() -> None:
    assert detector.judge(16.2, STEADY, LIMITS).reason == "no heartbeat for 16 s, 3 missed of 5 s"


def test_an_unsteady_cluster_gets_more_time_and_the_reason_says_so() -> None:
    unsteady = [5.0, 7.0, 5.5, 7.4, 6.8, 7.2, 7.3, 5.1]
    assert detector.judge(16.0, unsteady, LIMITS).kind == "suspected"
    judged = detector.judge(22.5, unsteady, LIMITS)
    assert judged.kind == "dead"
    assert "lately it reported every 7.4 s" in judged.reason


def test_an_outage_is_no_habit() -> None:
    assert detector.usual([*STEADY, 600.0, 90.0], 5.0) == 5.0


@given(st.lists(st.floats(0.01, 10_000), max_size=40), st.floats(0, 1000))
def test_never_given_up_early_nor_later_than_half_as_long_again(gaps: list[float], silence: float) -> None:
    kind = detector.judge(silence, gaps, LIMITS).kind
    if silence < 15.0:
        assert kind != "dead"
    if silence > 15.0 * 1.5 + 5.0 * 1.5:
        assert kind == "dead"


def test_silence_while_the_hub_did_not_listen_does_not_count() -> None:
    attention = Attention(turn=1.0, began=100.0)
    for second in range(101, 110):
        attention.come_round(float(second))
    attention.come_round(139.0)  # stopped for thirty seconds
    assert attention.silence(108.0, 139.0) == 2.0
    attention.come_round(140.0)
    assert attention.silence(139.0, 140.0) == 1.0
    assert attention.silence(50.0, 104.0) == 4.0  # nothing could be heard before it began


@given(st.lists(st.floats(0.1, 60), min_size=1, max_size=60), st.floats(0, 500))
def test_silence_is_never_more_than_the_time_that_passed(turns: list[float], since: float) -> None:
    attention = Attention(turn=1.0, began=0.0)
    now = 0.0
    for turn in turns:
        now += turn
        attention.come_round(now)
    assert 0.0 <= attention.silence(since, now) <= max(0.0, now - since) + 1e-9
