"""A rollout goes on by plain values: stage by stage, no faster than it may, stopped by failures, not by silence."""

from msgspec.structs import replace

from hansa.federation import RolloutRecord
from hansa.federation.configuration import stepping
from hansa.federation.configuration.stepping import Seen, step
from hansa.messages.configuration import Stages

STAGES = Stages(canary=1, percentages=(50, 100), soak=10.0, patience=30.0)
HAS, NOT_YET = Seen(has=True), Seen()


def rollout(stages: Stages = STAGES, **changes: object) -> RolloutRecord:
    first = RolloutRecord(document="base", version=2, former=1, since=0.0, stages=stages)
    return replace(first, **changes)


def seen(names: str, **others: Seen) -> dict[str, Seen]:
    """Letters are clusters that have not got it, capital ones have."""
    return {name.lower(): HAS if name.isupper() else NOT_YET for name in names} | others


def names(found: RolloutRecord) -> str:
    return "".join(sorted(found.given))


def test_first_one_then_half_then_all_each_watched_for_a_while() -> None:
    at = step(rollout(), seen("abcd"), 0)
    assert (at.state, at.stage, names(at), at.reason) == ("running", 0, "a", "given to a")
    waits = step(at, seen("abcd"), 1)
    assert (waits.state, waits.reason) == ("running", "waits for a")
    assert step(waits, seen("abcd"), 2) is waits, "what stays the same is not written again"
    soaking = step(waits, seen("Abcd"), 3)
    assert (soaking.state, soaking.since) == ("soaking", 3)
    assert step(soaking, seen("Abcd"), 12.9) is soaking
    half = step(soaking, seen("Abcd"), 13)
    assert (half.state, half.stage, names(half)) == ("running", 1, "ab")
    half = step(step(half, seen("ABcd"), 14), seen("ABcd"), 24)
    assert (half.stage, names(half)) == (2, "abcd")
    done = step(step(half, seen("ABCD"), 25), seen("ABCD"), 35)
    assert (done.state, done.reason, done.given) == ("done", "all have it", {})


def test_stages_that_bring_nobody_new_are_passed_over() -> None:
    only = step(rollout(), seen("a"), 0)
    done = step(step(only, seen("A"), 1), seen("A"), 11)
    assert done.state == "done"
    assert step(rollout(), {}, 0).reason == "it means no cluster now"


def test_the_healthy_are_asked_first_and_the_silent_last() -> None:
    clusters = seen("cd", a=Seen(reach="away"), b=Seen(well=False, trouble="storage"))
    assert names(step(rollout(), clusters, 0)) == "c"
    everyone = rollout(Stages(canary=3, percentages=(100,), soak=0))
    assert names(step(everyone, clusters, 0)) == "bcd"


def test_one_that_does_not_take_it_stops_it() -> None:
    at = step(rollout(), seen("abc"), 0)
    ended = step(at, seen("bc", a=Seen(error="jobs.cpu: too much")), 1)
    assert ended.state == "stopped"
    assert ended.reason == "1 failed, 0 may: a: it was not taken: jobs.cpu: too much"
    assert ended.failed == {"a": "it was not taken: jobs.cpu: too much"}
    assert names(ended) == "", "what was stopped must not come into force there some day"
    assert step(ended, seen("Abc"), 99) is ended


def test_or_sends_all_back_if_that_was_asked_for() -> None:
    at = step(rollout(replace(STAGES, roll_back=True)), seen("abc"), 0)
    ended = step(at, seen("bc", a=Seen(error="no")), 1)
    assert (ended.state, ended.given) == ("rolled-back", {})


def test_one_that_is_not_well_since_it_has_it_stops_it() -> None:
    at = step(step(rollout(), seen("abc"), 0), seen("Abc"), 1)
    ended = step(at, seen("bc", a=Seen(has=True, well=False, trouble="storage does not answer")), 2)
    assert ended.reason == "1 failed, 0 may: a: not well since it has it: storage does not answer"
    assert names(ended) == "a", "it has it, and keeps it for people to look at"


def test_one_that_was_not_well_before_is_no_failure() -> None:
    ill = Seen(well=False, trouble="storage")
    at = step(rollout(), {"a": ill}, 0)
    at = step(at, {"a": replace_seen(ill, has=True)}, 1)
    assert at.state == "soaking"


def test_one_that_reports_but_does_not_take_it_in_time_stops_it() -> None:
    at = step(rollout(), seen("abc"), 0)
    assert step(at, seen("abc"), 29.9).state == "running"
    assert step(at, seen("abc"), 30).reason.endswith("a: it reports, but did not take it within 30 s")


def test_so_many_failures_as_may_be_are_stood_in_for() -> None:
    at = step(rollout(replace(STAGES, most_failures=1)), seen("abc"), 0)
    at = step(at, seen("bc", a=Seen(error="no")), 1)
    assert (at.state, names(at)) == ("running", "ab")
    assert step(at, seen("c", a=Seen(error="no"), b=Seen(error="no")), 2).state == "stopped"


def test_a_silent_canary_is_waited_for_and_then_stood_in_for() -> None:
    silent = Seen(reach="away")
    at = step(rollout(), seen("abc"), 0)
    at = step(at, seen("bc", a=silent), 5)
    assert (at.state, at.reason, at.given["a"].away) == ("running", "waits for a", 5)
    assert names(step(at, seen("bc", a=silent), 34)) == "a"
    at = step(at, seen("bc", a=silent), 35)
    assert names(at) == "ab"
    at = step(step(at, seen("Bc", a=silent), 36), seen("Bc", a=silent), 46)
    assert (at.stage, names(at)) == (1, "abc"), "two of three, and a does not count"


def test_but_no_more_than_chance_would_have_it() -> None:
    silent = Seen(reach="away")
    at = rollout()
    for now in range(0, 400, 10):
        at = step(at, {name: silent if name in at.given else NOT_YET for name in "abcde"}, now)
    assert (at.state, names(at)) == ("running", "ab")
    assert at.reason == "waits: out of reach since they got it: a, b"
    back = step(at, seen("ABcde"), 500)
    assert back.state == "soaking", "it goes on by itself when they are back"


def test_the_silent_do_not_hold_up_the_others_and_are_told_later() -> None:
    clusters = seen("ab", c=Seen(reach="away"))
    at = rollout(Stages(canary=1, percentages=(100,), soak=0))
    for now, has in ((0, "ab"), (1, "Ab"), (2, "AB"), (3, "AB")):
        at = step(at, clusters | seen(has), now)
    assert at.state == "done"
    assert at.reason == "the others have it; out of reach, and told when they are back: c"


def test_nobody_in_reach_proves_nothing() -> None:
    at = step(rollout(), {"a": Seen(reach="away"), "b": Seen(reach="away")}, 0)
    assert (at.state, at.reason, at.given) == ("running", "waits for a cluster that is in reach", {})


def test_one_that_comes_back_has_its_time_again() -> None:
    at = step(rollout(), seen("ab"), 0)
    at = step(at, seen("b", a=Seen(reach="away")), 20)
    at = step(at, seen("ab"), 40)
    assert at.given["a"].at == 40
    assert step(at, seen("ab"), 69).state == "running"
    assert step(at, seen("ab"), 70).state == "stopped"


def test_a_late_one_is_neither_lost_nor_failed() -> None:
    late = Seen(reach="late")
    at = step(rollout(), seen("ab"), 0)
    assert step(at, seen("b", a=late), 500).state == "running"
    soaking = step(at, seen("Ab"), 1)
    assert step(soaking, seen("b", a=Seen(reach="late", has=True)), 20).state == "running", "its only witness is away"


def test_soaking_begins_anew_when_one_has_it_no_longer() -> None:
    at = step(step(rollout(), seen("ab"), 0), seen("Ab"), 1)
    at = step(at, seen("ab"), 5)
    assert at.state == "running"
    at = step(at, seen("Ab"), 6)
    assert (at.state, at.since) == ("soaking", 6)


def test_resuming_forgives_what_failed_once() -> None:
    no = Seen(error="no")
    at = step(step(rollout(), seen("ab"), 0), seen("b", a=no), 1)
    again = step(stepping.resumed(at, seen("b", a=no), "admin", 100), seen("b", a=no), 100)
    assert (names(again), again.failed) == ("a", {})
    assert step(again, seen("b", a=no), 101).state == "running", "it still says what it said before it was asked again"
    assert step(again, seen("b", a=Seen(error="other")), 101).state == "stopped"
    assert step(again, seen("b", a=no), 130).state == "stopped"
    assert step(again, seen("Ab"), 101).state == "soaking"
    ill = Seen(has=True, well=False, trouble="storage")
    at = step(step(rollout(), seen("ab"), 0), seen("b", a=ill), 1)
    assert at.state == "stopped"
    assert step(stepping.resumed(at, seen("b", a=ill), "admin", 2), seen("b", a=ill), 3).state == "soaking"


def test_nothing_moves_while_it_is_paused() -> None:
    at = stepping.paused(step(rollout(), seen("ab"), 0), "admin", 1)
    assert step(at, seen("b", a=Seen(error="no")), 1000) is at


def test_newcomers_wait_for_the_next_stage_or_the_end() -> None:
    at = step(step(rollout(Stages(canary=1, percentages=(100,), soak=10)), seen("a"), 0), seen("A"), 1)
    at = step(at, seen("Abcdefgh"), 2)
    assert (at.state, names(at)) == ("soaking", "a")


def test_long_lists_are_cut() -> None:
    assert stepping.listed("gfedcba") == "a, b, c, d, e and 2 more"


def replace_seen(one: Seen, **changes: bool) -> Seen:
    return Seen(**{name: changes.get(name, getattr(one, name)) for name in Seen.__slots__})
