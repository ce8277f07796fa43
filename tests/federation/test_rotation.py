"""When does one root follow another? From plain values; and whatever happens, whoever may still come is let in."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hansa.federation import Authority, joining, rotation
from hansa.federation.rotation import Activate, Drop, Holding, Make, Pace
from hansa.identity import authority

NOW = 1_800_000_000.0
PACE = Pace(settle=10, patience=60, life=1000, late=500)


def root(state: str, *, since: float = NOW, until: float = NOW + 1000, version: int = 1) -> Authority:
    made = authority.new_root("hansa", now=NOW, seconds=until - NOW)
    return Authority(made, state, since, version)  # type: ignore[arg-type]


def holding(*roots: Authority, until: float = NOW + 100, reports: bool = True, generation: int = 9) -> Holding:
    return Holding(frozenset(one.root.id for one in roots), until, reports, generation)


def due(authorities: list[Authority], *members: Holding, at: float = 0.0) -> rotation.Step | None:
    return rotation.step(authorities, lambda: members, NOW + at, PACE)


def test_the_first_and_the_next_before_the_end() -> None:
    assert isinstance(due([]), Make)
    active = root("active")
    assert due([active]) is None
    assert due([active], at=749) is None
    assert isinstance(due([active], at=751), Make)
    assert due([active, root("next", since=NOW + 751)], at=752) is None


def test_the_next_signs_when_all_who_report_trust_it() -> None:
    active, coming = root("active"), root("next", version=7)
    knows, not_yet = holding(active, generation=7), holding(active, generation=6)
    assert due([active, coming], knows, at=9) is None  # hubs may not have heard of it
    assert due([active, coming], knows, at=10) == Activate(coming.root.id)
    assert due([active, coming], knows, not_yet, at=59) is None
    assert due([active, coming], knows, replace(not_yet, reports=False), at=10) == Activate(coming.root.id)
    assert due([active, coming], knows, not_yet, at=60) == Activate(coming.root.id)
    assert due([root("active", until=NOW + 5), coming], at=6) == Activate(coming.root.id)


def test_the_former_goes_when_nobody_needs_it() -> None:
    former, active = root("retiring"), root("active")
    assert due([former, active], at=9) is None
    assert due([former, active], holding(active), at=10) == Drop(former.root.id, "no member needs it any more")
    assert due([former, active], holding(active), holding(former), at=99) is None
    # one that is away may come back with it for a while
    away = holding(former, until=NOW + 100, reports=False)
    assert due([former, active], away, at=599) is None
    assert isinstance(due([former, active], away, at=600), Drop)
    assert due([root("retiring", until=NOW + 5), active], holding(former), at=5) is not None


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_no_step_shuts_out_who_may_still_come(data: st.DataObject) -> None:
    """Any order of time passing, rotations asked for, renewals and silence: there is always exactly one that signs, at
    most one that comes, and what is dropped is held by nobody whose certificate counts."""
    now, version = 0.0, 1
    roots = [Authority(_named(1), "active", 0.0, version)]
    members = dict.fromkeys("abc", (roots[0].root.id, 300.0, 0))  # its root, its end, the generation it knows
    for _ in range(data.draw(st.integers(5, 40))):
        match data.draw(st.sampled_from(["time", "ask", "renew", "learn"])):
            case "time":
                now += data.draw(st.sampled_from([1.0, 5.0, 20.0, 90.0]))
            case "ask":
                if not any(one.state == "next" for one in roots):
                    version += 1
                    roots.append(Authority(_named(version), "next", now, version))
            case "renew":
                name = data.draw(st.sampled_from("abc"))
                held, until, _ = members[name]
                trusted = {one.root.id for one in roots if one.state != "gone"}
                if held in trusted and now < until + PACE.late:
                    signing = next(one.root.id for one in roots if one.state == "active")
                    members[name] = (signing, now + 300, version)
            case "learn":
                name = data.draw(st.sampled_from("abc"))
                members[name] = (*members[name][:2], version)
        holdings = [Holding(frozenset({held}), until, True, known) for held, until, known in members.values()]
        before = {one.root.id: one.state for one in roots}
        decided = _step(roots, holdings, now)
        if decided is not None:
            version += 1
            roots = _after(roots, decided, now, version)
        assert [one.state for one in roots].count("active") == 1
        assert [one.state for one in roots].count("next") <= 1
        if isinstance(decided, Drop):
            assert before[decided.root] == "retiring"
            assert not any(held == decided.root and now < until + PACE.late for held, until, _ in members.values())
        if isinstance(decided, Activate):
            assert before[decided.root] == "next"


def _named(number: int) -> authority.Root:
    return authority.Root(f"{number:08x}", ROOT.certificate, "")


def _step(roots: list[Authority], holdings: list[Holding], now: float) -> rotation.Step | None:
    decided = rotation.step(roots, lambda: holdings, now, PACE)
    assert not isinstance(decided, Make)  # these never come to their end
    return decided


def _after(roots: list[Authority], decided: rotation.Step, now: float, version: int) -> list[Authority]:
    match decided:
        case Activate(ident):
            changes = {ident: "active", next(one.root.id for one in roots if one.state == "active"): "retiring"}
        case Drop(ident):
            changes = {ident: "gone"}
        case _:
            changes = {}
    return [
        replace(one, state=changes[one.root.id], since=now, version=version) if one.root.id in changes else one  # type: ignore[arg-type]
        for one in roots
    ]


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_renewals_never_take_the_certificate_in_use(answers_arrive: list[bool]) -> None:
    """Whichever answers get lost, the one in use, and the one of the last answer, may be shown."""
    serials: tuple[str, ...] = ("0",)
    in_use = "0"
    for number, arrives in enumerate(answers_arrive, 1):
        serials = joining.kept(serials, in_use, str(number))
        assert in_use in serials
        assert serials[-1] == str(number)
        assert len(serials) <= 3
        assert list(serials) == sorted(serials, key=int)
        if arrives:
            in_use = str(number)


@pytest.mark.parametrize("late", [1, 2])
def test_a_late_answer_is_as_good(late: int) -> None:
    """Two renewals at once: the manager may keep either."""
    serials = joining.kept(("0",), "0", "1")
    serials = joining.kept(serials, "0", "2")
    assert serials == ("0", "1", "2")
    assert str(late) in joining.kept(serials, str(late), "3")


ROOT = authority.new_root("hansa", now=NOW, seconds=10 * 365 * 86_400)
