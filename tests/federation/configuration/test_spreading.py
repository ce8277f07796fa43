"""Configuration reaches clusters as it should: in stages, acknowledged, stopped on failures, whole after a crash."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from federation import small_federation
from federation.small_federation import ADMIN, SOMEBODY, Manager, join, later, turn
from hansa import bootstrap
from hansa.federation import Hub, configuration, errors
from hansa.federation.configuration import changing, merging, viewing
from hansa.kernel.errors import Forbidden, HansaError
from hansa.messages.configuration import NewDocument, RollBack, Scope, Stages
from hansa.messages.members import Applied, Health, Setting
from hansa.store import Database

QUICK = Stages(canary=1, percentages=(50, 100), soak=10.0, patience=30.0)


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[bootstrap.HubApp]:
    async with bootstrap.opened_hub(small_federation.settings(tmp_path)) as opened:
        yield opened


@pytest.fixture
async def hub(app: bootstrap.HubApp) -> Hub:
    return app.hub


@pytest.fixture
async def four(hub: Hub) -> list[Manager]:
    return [await join(hub, name, region="eu" if name < "c" else "us") for name in "abcd"]


def cpu(amount: str, **more: object) -> NewDocument:
    return NewDocument(settings={"jobs": {"cpu": amount}}, **{"stages": QUICK, **more})  # type: ignore[arg-type]


async def settle(hub: Hub, managers: list[Manager], turns: int = 12) -> None:
    """Until it is done, all following and time passing."""
    driver = configuration.Driver(hub)
    for _ in range(turns):
        await turn(hub, driver)
        for manager in managers:
            manager.follow()
        later(hub, 5)


def versions(managers: list[Manager], document: str = "base") -> list[int]:
    return [manager.has(document) for manager in managers]


def states(hub: Hub, document: str = "base") -> dict[str, tuple[int, int, str]]:
    shown = viewing.rollout(hub, document).clusters
    return {one.cluster: (one.desired, one.applied, one.state) for one in shown}


async def test_a_version_spreads_stage_by_stage(hub: Hub, four: list[Manager]) -> None:
    driver = configuration.Driver(hub)
    await changing.put(hub, ADMIN, "base", cpu("2"))
    assert not any(manager.follow() for manager in four), "nobody is told before the first turn"
    await turn(hub, driver)
    assert [manager.follow() for manager in four] == [True, False, False, False]
    assert four[0].settings == {"jobs": {"cpu": "2"}}
    await turn(hub, driver)
    assert viewing.rollout(hub, "base").state == "soaking"
    assert states(hub) == {"a": (1, 1, "in-sync")}
    later(hub, 11)
    for manager in four:
        manager.report()
    await turn(hub, driver)
    for manager in four:
        manager.follow()
    assert versions(four) == [1, 1, 0, 0]
    await settle(hub, four)
    assert versions(four) == [1, 1, 1, 1]
    assert viewing.rollout(hub, "base").state == "done"
    late = await join(hub, "e")
    await turn(hub, driver)
    late.follow()
    assert late.has("base") == 1, "who joins later gets what all have"
    assert not viewing.overview(hub).drift


async def test_a_canary_that_fails_stops_it_and_everyone_s_version_is_shown(hub: Hub, four: list[Manager]) -> None:
    await changing.put(hub, ADMIN, "base", cpu("2"))
    await settle(hub, four)
    four[0].refuses = "jobs.cpu: more than this machine has"
    await changing.put(hub, ADMIN, "base", cpu("200"))
    await settle(hub, four)
    found = viewing.rollout(hub, "base")
    assert (found.state, found.version, found.former, found.stage) == ("stopped", 2, 1, 1)
    assert "a: it was not taken: jobs.cpu: more than this machine has" in found.reason
    assert versions(four) == [1, 1, 1, 1]
    assert states(hub) == {
        "a": (1, 1, "failed"),
        "b": (1, 1, "in-sync"),
        "c": (1, 1, "in-sync"),
        "d": (1, 1, "in-sync"),
    }
    assert viewing.overview(hub).drift == (), "it stays with what it has"
    assert four[0].applied.error == ""
    four[0].refuses = ""
    await changing.resume(hub, ADMIN, "base")
    await settle(hub, four)
    assert versions(four) == [2, 2, 2, 2]


async def test_one_that_falls_ill_after_it_took_it_stops_it(hub: Hub, four: list[Manager]) -> None:
    driver = configuration.Driver(hub)
    await changing.put(hub, ADMIN, "base", cpu("2", stages=Stages(soak=10, roll_back=True)))
    await turn(hub, driver)
    four[0].follow()
    await turn(hub, driver)
    four[0].health = Health(missing=("storage does not answer",))
    four[0].report()
    await turn(hub, driver)
    found = viewing.rollout(hub, "base")
    assert (found.state, found.reason) == (
        "rolled-back",
        "1 failed, 0 may: a: not well since it has it: storage does not answer",
    )
    four[0].follow()
    assert versions(four) == [0, 0, 0, 0], "it went back by itself, as was asked for"


async def test_one_that_is_cut_off_holds_up_nobody_and_converges_later(hub: Hub, four: list[Manager]) -> None:
    driver, rest = configuration.Driver(hub), four[:3]
    later(hub, 60)
    for manager in rest:
        manager.report()
    await small_federation.judge(hub)
    await changing.put(hub, ADMIN, "base", cpu("2"))
    for _ in range(12):
        await turn(hub, driver)
        for manager in rest:
            manager.follow()
        later(hub, 5)
    found = viewing.rollout(hub, "base")
    assert (found.state, found.reason) == (
        "done",
        "the others have it; out of reach, and told when they are back: d",
    )
    assert states(hub)["d"] == (1, 0, "out-of-reach")
    (drift,) = viewing.overview(hub).drift
    assert (drift.cluster, drift.state) == ("d", "out-of-reach")
    assert "no heartbeat" in drift.reason
    four[3].follow()
    assert four[3].has("base") == 1
    assert not viewing.overview(hub).drift


async def test_a_crash_after_a_step_was_written_leaves_nobody_behind(hub: Hub, four: list[Manager]) -> None:
    await changing.put(hub, ADMIN, "base", cpu("2"))
    rollout = hub.shelf.rollout("base")
    assert rollout is not None
    seen = configuration.observing.audience(hub, rollout, hub.clock.now())
    stepped = configuration.stepping.step(rollout, seen, hub.clock.now())
    assert await hub.rollouts.put(stepped) is not None  # and here the process died
    assert not four[0].follow()
    await small_federation.in_step(hub)
    assert [manager.follow() for manager in four] == [True, False, False, False]
    assert versions(four) == [1, 0, 0, 0]
    four[0].applied = Applied(generation=four[0].applied.generation)  # it asked a hub that was a moment behind
    four[0].report()
    await turn(hub, configuration.Driver(hub))
    assert four[0].follow()
    assert versions(four) == [1, 0, 0, 0]


async def test_what_somebody_else_decided_meanwhile_is_not_overwritten(hub: Hub, four: list[Manager]) -> None:
    await changing.put(hub, ADMIN, "base", cpu("2"))
    stale = hub.shelf.rollout("base")
    assert stale is not None
    await changing.pause(hub, ADMIN, "base")
    assert await hub.rollouts.put(stale) is None
    await settle(hub, four)
    assert versions(four) == [0, 0, 0, 0]
    assert viewing.rollout(hub, "base").reason == f"paused by {ADMIN.name}"
    await changing.resume(hub, ADMIN, "base")
    await settle(hub, four)
    assert versions(four) == [1, 1, 1, 1]


async def test_who_was_given_a_version_keeps_it_until_the_next_one_comes(hub: Hub, four: list[Manager]) -> None:
    """Also if it has not said yet that it took it: no way back, and forth again."""
    driver, slow = configuration.Driver(hub), Stages(canary=2, percentages=(100,), soak=10.0)
    await changing.put(hub, ADMIN, "base", cpu("1"))
    await settle(hub, four)
    await changing.put(hub, ADMIN, "base", cpu("2", stages=slow))
    await turn(hub, driver)
    four[0].follow()  # it says so, but no turn has noticed yet; the second was given it and has not even asked
    await changing.put(hub, ADMIN, "base", cpu("3"))
    four[0].follow()
    four[1].follow()
    assert versions(four) == [2, 2, 1, 1]
    await turn(hub, driver)
    for manager in four:
        manager.follow()
    assert versions(four) == [3, 2, 1, 1]
    await settle(hub, four)
    assert versions(four) == [3, 3, 3, 3]


async def test_a_way_back_gives_nobody_what_it_goes_back_from(hub: Hub, four: list[Manager]) -> None:
    driver = configuration.Driver(hub)
    await changing.put(hub, ADMIN, "base", cpu("1"))
    await settle(hub, four)
    await changing.put(hub, ADMIN, "base", cpu("2", stages=Stages(canary=2, percentages=(100,))))
    await turn(hub, driver)
    four[0].follow()
    await turn(hub, driver)
    await changing.roll_back(hub, ADMIN, "base", RollBack(version=1, stages=QUICK))
    for manager in four:
        manager.follow()
    assert versions(four) == [2, 1, 1, 1], "the second was given it, and had not taken it"


async def test_a_newer_version_ends_the_rollout_before_it_and_goes_on_from_what_clusters_have(
    hub: Hub, four: list[Manager]
) -> None:
    driver = configuration.Driver(hub)
    await changing.put(hub, ADMIN, "base", cpu("1"))
    await settle(hub, four)
    await changing.put(hub, ADMIN, "base", cpu("2"))
    await turn(hub, driver)
    four[0].follow()
    four[0].refuses = "no"
    await changing.put(hub, ADMIN, "base", cpu("3"))
    await turn(hub, driver)
    for manager in four:
        manager.follow()
    await turn(hub, driver)
    assert viewing.rollout(hub, "base").state == "stopped"
    assert versions(four) == [2, 1, 1, 1]
    four[0].refuses = ""
    await changing.stop(hub, ADMIN, "base")
    await changing.roll_back(hub, ADMIN, "base", RollBack(version=1))
    await turn(hub, driver)
    for manager in four:
        manager.follow()
    assert versions(four) == [4, 4, 4, 4]
    assert all(manager.settings == {"jobs": {"cpu": "1"}} for manager in four)
    found = [(one.version, one.comment) for one in viewing.versions(hub, "base").versions]
    assert found == [(4, "as version 1"), (3, ""), (2, ""), (1, "")]


async def test_later_documents_win_and_it_is_shown_whose_value_lost(hub: Hub, four: list[Manager]) -> None:
    at_once = changing.AT_ONCE
    await changing.put(hub, ADMIN, "base", cpu("1", stages=at_once))
    everyone = NewDocument(settings={"log": {"level": "debug"}, "jobs": {"cpu": "9"}}, stages=at_once)
    await changing.put(hub, ADMIN, "all", everyone)
    await changing.put(hub, ADMIN, "region", cpu("2", scope=Scope(selector="region=eu"), stages=at_once))
    await changing.put(hub, ADMIN, "alone", cpu("3", scope=Scope(cluster="a"), stages=at_once))
    await settle(hub, four)
    assert [manager.settings["jobs"]["cpu"] for manager in four] == ["3", "2", "1", "1"]
    found = merging.effective(hub, "a")
    assert found.settings == {"jobs": {"cpu": "3"}, "log": {"level": "debug"}}
    told = {one.setting: (one.document, one.version, one.overrides) for one in found.origins}
    assert told == {"jobs.cpu": ("alone", 1, ("all", "base", "region")), "log.level": ("all", 1, ())}
    assert found.drift == ""
    assert four[0].applied.documents == tuple(
        Setting(name=name, version=1) for name in ("all", "alone", "base", "region")
    )
    await small_federation.mark(hub, "c", overrides={"region": "eu"})
    assert merging.effective(hub, "c").drift == "region: should have version 1, has none (waiting)"
    await settle(hub, four)
    assert four[2].settings["jobs"]["cpu"] == "2", "who moves into a scope is told by itself"


async def test_a_removed_document_leaves_in_stages_too(hub: Hub, four: list[Manager]) -> None:
    await changing.put(hub, ADMIN, "base", cpu("1"))
    await settle(hub, four)
    driver = configuration.Driver(hub)
    await changing.remove(hub, ADMIN, "base", QUICK)
    await turn(hub, driver)
    for manager in four:
        manager.follow()
    assert versions(four) == [0, 1, 1, 1]
    assert [one.removed for one in viewing.documents(hub).documents] == [True]
    await settle(hub, four)
    assert versions(four) == [0, 0, 0, 0]
    assert viewing.documents(hub).documents == ()
    with pytest.raises(errors.NoSuchDocument):
        viewing.state(hub, "base")
    with pytest.raises(errors.NoSuchDocument):
        await changing.remove(hub, ADMIN, "base", QUICK)
    await changing.roll_back(hub, ADMIN, "base", RollBack(version=1))
    await settle(hub, four)
    assert versions(four) == [3, 3, 3, 3]


async def test_a_narrower_scope_takes_it_from_those_outside(hub: Hub, four: list[Manager]) -> None:
    await changing.put(hub, ADMIN, "base", cpu("1"))
    await settle(hub, four)
    await changing.put(hub, ADMIN, "base", cpu("1", scope=Scope(selector="region=us")))
    await settle(hub, four)
    assert versions(four) == [0, 0, 2, 2]
    told = viewing.diff(hub, "base", 1, 2)
    assert (told.settings, told.scope) == ((), ("every cluster", "region=us"))


async def test_differences_between_versions(hub: Hub) -> None:
    await changing.put(hub, ADMIN, "base", cpu("1"))
    new = NewDocument(settings={"jobs": {"memory": "1Gi"}, "log": {"level": "debug"}})
    await changing.put(hub, ADMIN, "base", new)
    told = [(one.setting, one.change, one.before, one.after) for one in viewing.diff(hub, "base", None, None).settings]
    assert told == [
        ("jobs.cpu", "removed", "1", None),
        ("jobs.memory", "added", None, "1Gi"),
        ("log.level", "added", None, "debug"),
    ]
    with pytest.raises(errors.NoSuchDocument, match="version 9"):
        viewing.diff(hub, "base", 1, 9)


async def test_the_same_again_is_no_new_version_and_another_ground_is_refused(hub: Hub, four: list[Manager]) -> None:
    await changing.put(hub, ADMIN, "base", cpu("1", expected=0))
    same = await changing.put(hub, ADMIN, "base", cpu("1"))
    assert same.version == 1
    with pytest.raises(errors.WrongVersion) as refused:
        await changing.put(hub, ADMIN, "base", cpu("2", expected=0))
    assert refused.value.facts == {"expected": 0, "newest": 1}
    await changing.stop(hub, ADMIN, "base")
    again = await changing.put(hub, ADMIN, "base", cpu("1"))
    assert again.version == 2, "of one that was stopped the same is tried anew"
    await settle(hub, four)
    with pytest.raises(errors.NotInThisState):
        await changing.pause(hub, ADMIN, "base")


REFUSED = [
    (cpu("1", scope=Scope(selector="a=", cluster="b")), "not both"),
    (cpu("1", scope=Scope(cluster="aa")), "did you mean a?"),
    (cpu("1", scope=Scope(selector="cpu_free>3")), "come and go"),
    (cpu("1", scope=Scope(selector="regoin=eu")), "region"),
    (cpu("1", stages=Stages(percentages=(50,))), "end there"),
    (cpu("1", stages=Stages(percentages=(50, 20, 100))), "grow"),
    (cpu("1", stages=Stages(canary=-1)), "canary"),
    (cpu("1", stages=Stages(patience=0)), "patience"),
    (cpu("1", comment="a\0b"), "comment"),
    (NewDocument(settings={}), "sets nothing"),
    (NewDocument(settings={"http": {"port": 1}}), "restart"),
]


async def test_what_is_refused_says_why(hub: Hub, four: list[Manager]) -> None:
    for new, said in REFUSED:
        with pytest.raises(HansaError) as refused:
            await changing.put(hub, ADMIN, "base", new)
        assert said in f"{refused.value.message} {refused.value.hint}"
    assert hub.shelf.find("config", "base") is None


async def test_only_the_admin_changes_anything(hub: Hub) -> None:
    for action in (
        changing.put(hub, SOMEBODY, "base", cpu("1")),
        changing.roll_back(hub, SOMEBODY, "base", RollBack(version=1)),
        changing.remove(hub, SOMEBODY, "base", QUICK),
        changing.pause(hub, SOMEBODY, "base"),
        changing.resume(hub, SOMEBODY, "base"),
        changing.stop(hub, SOMEBODY, "base"),
    ):
        with pytest.raises(Forbidden):
            await action


async def test_it_can_be_read_without_the_database(app: bootstrap.HubApp, four: list[Manager]) -> None:
    hub = app.hub
    await changing.put(hub, ADMIN, "base", cpu("1"))
    await settle(hub, four)
    await app.database.close()
    assert viewing.state(hub, "base").document.settings == {"jobs": {"cpu": "1"}}
    assert merging.effective(hub, "a").origins[0].document == "base"
    assert configuration.desired_for(hub, "a")[0] == {"jobs": {"cpu": "1"}}
    with pytest.raises(HansaError) as refused:
        await changing.put(hub, ADMIN, "base", cpu("2"))
    assert refused.value.code == "store.unavailable"
    assert isinstance(app.database, Database)


async def test_a_manager_that_cannot_take_it_is_left_out_and_named(hub: Hub, four: list[Manager]) -> None:
    old = await join(hub, "old", speaks=("sections.v1",), version="0.1")
    await changing.put(hub, ADMIN, "base", cpu("1"))
    await settle(hub, four)
    assert viewing.rollout(hub, "base").state == "done"
    assert not old.follow() or old.has("base") == 0
    assert states(hub)["old"] == (1, 0, "unsupported")
