"""Joining, leaving, being removed and coming back; and that the manager has its settings without its hub."""

import asyncio
from dataclasses import replace

import pytest
from pydantic import SecretStr

from federation.member.scene import ADMIN, Scene, working
from hansa.federation import NOW, acting, member, syncing
from hansa.federation.member import errors
from hansa.kernel.errors import Temporary


async def state(scene: Scene) -> str:
    return (await scene.agent.shown()).state


async def until(scene: Scene, wanted: str) -> None:
    async with asyncio.timeout(20):
        while scene.agent.state != wanted:
            await asyncio.sleep(0.01)


async def test_a_manager_that_belongs_to_nobody_says_how_to_join(scene: Scene) -> None:
    shown = await scene.agent.shown()
    assert (shown.state, shown.hub) == ("none", "")
    assert "hansa cluster join" in shown.hint
    with pytest.raises(errors.NoMember):
        await scene.agent.leave()


async def test_joining(scene: Scene) -> None:
    await scene.join()
    shown = await scene.agent.shown()
    assert (shown.state, shown.hub) == ("member", "https://hub.test:7443")
    assert acting.get(scene.hub, "lubeck").facts.name == "Lübeck"
    with pytest.raises(errors.AlreadyMember):
        await scene.join()


@pytest.mark.parametrize(
    "hub",
    ["", "hub:7443", "http://hub:7443", "https://", "https://u:p@hub", "https://hub/x", "https://hub:0", "https://[x"],
)
async def test_an_address_that_is_none_is_refused(scene: Scene, hub: str) -> None:
    with pytest.raises(errors.BadHub):
        await scene.agent.join(hub, "a token")
    assert await state(scene) == "none"


async def test_a_bad_token_is_the_hubs_refusal_and_changes_nothing(scene: Scene) -> None:
    with pytest.raises(errors.JoinRefused) as refused:
        await scene.agent.join("https://hub.test", "made up")
    assert refused.value.facts["problem"] == "federation.bad-token"
    assert await state(scene) == "none"


async def test_a_hub_out_of_reach_is_temporary(scene: Scene) -> None:
    scene.line.cut = "no route"
    with pytest.raises(Temporary):
        await scene.join()
    assert await state(scene) == "none"


async def test_approval_by_hand(scene: Scene) -> None:
    scene.line.approve = False
    await scene.join()
    assert await state(scene) == "pending"
    await scene.beat()
    assert await state(scene) == "pending"

    known = acting.get(scene.hub, "lubeck")
    known.record = replace(known.record, state="ready")
    await scene.beat()
    assert await state(scene) == "member"


async def test_after_a_restart_without_the_hub_everything_is_in_force(scene: Scene) -> None:
    await scene.neighbour("visby")
    await scene.join()
    scene.hub.settings_for = lambda cluster: ({"jobs": {"cpu": "2"}}, ())
    await acting.cordon(scene.hub, ADMIN, "lubeck", on=True)
    assert await scene.look()
    assert scene.cluster.settings == {"jobs": {"cpu": "2"}}
    scene.line.cut = "no route"
    await scene.restart()
    assert scene.cluster.settings == {"jobs": {"cpu": "2"}}
    assert scene.cluster.neighbours == ("visby",)
    assert scene.cluster.duty == (True, False)
    assert await state(scene) == "member"


async def test_one_that_was_removed_while_cut_off_serves_on_and_returns_cleanly(scene: Scene) -> None:
    await scene.neighbour("visby")
    scene.hub.settings_for = lambda cluster: ({"jobs": {"cpu": "2"}}, ())
    await scene.join()
    await scene.look()
    assert (scene.cluster.neighbours, scene.cluster.settings) == (("visby",), {"jobs": {"cpu": "2"}})
    scene.line.cut = "no route"
    await scene.beat()
    await acting.remove(scene.hub, ADMIN, "lubeck", force=True)
    scene.line.cut = ""
    assert await scene.beat() is None
    shown = await scene.agent.shown()
    assert shown.state == "removed"
    assert "removed" in shown.reason
    assert "hansa cluster join" in shown.hint
    assert (scene.cluster.neighbours, scene.cluster.settings) == ((), {})
    await scene.restart()
    assert await state(scene) == "removed"
    await scene.join()
    assert await state(scene) == "member"
    assert await scene.beat() is not None
    assert scene.line.sent[-1].incarnation == 2
    assert await scene.look()
    assert scene.cluster.neighbours == ("visby",)


async def test_a_report_of_a_former_life_is_refused(scene: Scene) -> None:
    """The same id has joined from elsewhere, from a copy of the machine perhaps."""
    await scene.join()
    other = scene.line._held
    scene.line.tokens.add("another")
    await scene.line.join("https://hub.test", "another", "lubeck", scene.cluster.facts())
    scene.line._held = other
    assert await scene.beat() is None
    assert await state(scene) == "removed"


async def test_a_hub_that_takes_its_word_back(scene: Scene) -> None:
    await scene.join()
    record = acting.get(scene.hub, "lubeck").record
    scene.hub.registry.drop("lubeck")
    await scene.beat()
    assert await state(scene) == "removed"
    scene.hub.registry.put(record)  # restored from a backup
    await scene.beat()
    assert await state(scene) == "member"


async def test_leaving_waits_for_the_work(scene: Scene) -> None:
    await scene.join()
    scene.cluster.work = member.Progress(2, 1)
    async with working(scene.agent):
        await scene.agent.leave()
        shown = await scene.agent.shown()
        assert (shown.state, shown.draining, shown.drained, shown.running) == ("leaving", True, False, 2)
        assert scene.cluster.duty == (True, True)
        scene.cluster.work = member.Progress(0, 0)
        await until(scene, "left")
    assert scene.cluster.duty == (False, False)
    assert scene.line.held() is None
    assert scene.hub.registry.get("lubeck") is None
    assert "own admin" in (await scene.agent.shown()).reason
    assert scene.line.goodbyes == [scene.line.sent[-1].run]


async def test_a_wish_to_leave_survives_a_restart(scene: Scene) -> None:
    await scene.join()
    scene.cluster.work = member.Progress(1, 0)
    await scene.agent.leave()
    await scene.restart()
    assert (await state(scene), scene.cluster.duty) == ("leaving", (True, True))


async def test_the_hub_asks_to_leave(scene: Scene) -> None:
    await scene.join()
    scene.cluster.work = member.Progress(1, 0)
    async with working(scene.agent):
        await acting.let_go(scene.hub, ADMIN, "lubeck")
        await syncing.once(scene.hub)
        await until(scene, "leaving")
        scene.cluster.work = member.Progress(0, 0)
        await until(scene, "left")
    assert "hub's admin" in (await scene.agent.shown()).reason


async def test_leaving_by_force_needs_no_hub(scene: Scene) -> None:
    await scene.join()
    scene.cluster.work = member.Progress(5, 5)
    scene.line.cut = "no route"
    async with working(scene.agent):
        await scene.agent.leave(force=True)
        assert await state(scene) == "left"
    assert "could not be told" in (await scene.agent.shown()).reason
    assert scene.line.held() is None


async def test_joining_again_after_leaving(scene: Scene) -> None:
    await scene.join()
    await scene.agent.leave(force=True)
    await scene.join()
    assert await scene.beat() is not None
    assert scene.line.sent[-1].incarnation == 2


async def test_joining_by_the_settings(scene: Scene) -> None:
    scene.line.cut = "the hub starts later"
    scene.line.tokens.add("from settings")
    await scene.restart(hub="https://hub.test", token=SecretStr("from settings"))
    async with working(scene.agent):
        async with asyncio.timeout(20):
            while not scene.agent._session.trouble:
                await asyncio.sleep(0.01)
        scene.line.cut = ""
        await until(scene, "member")
    await scene.agent.leave(force=True)
    await scene.restart()
    async with working(scene.agent):
        await asyncio.sleep(0)
        assert scene.agent.state == "left"  # the token was used; somebody made it leave


async def test_a_bad_token_in_the_settings_is_said_and_not_tried_again(scene: Scene) -> None:
    await scene.restart(hub="https://hub.test", token=SecretStr("made up"))
    async with working(scene.agent), asyncio.timeout(20):
        while not (await scene.agent.shown()).reason:
            await asyncio.sleep(0.01)
    assert "not known" in (await scene.agent.shown()).reason


async def test_credentials_that_a_crash_left_are_taken_up(scene: Scene) -> None:
    """It died after the hub had signed, before it wrote down that it belongs."""
    scene.line.tokens.add("a token")
    await scene.line.join("https://hub.test", "a token", "lubeck", scene.cluster.facts())
    await scene.restart()
    assert await state(scene) == "member"
    assert await scene.beat() is not None


async def test_credentials_that_were_deleted_end_the_membership(scene: Scene) -> None:
    await scene.join()
    await scene.line.forget()
    await scene.restart()
    assert await state(scene) == "left"


async def test_a_cut_line_is_tried_again_and_again(scene: Scene) -> None:
    await scene.join()
    scene.agent._session._pace.every = 0.1
    async with working(scene.agent):
        async with asyncio.timeout(20):
            while scene.agent.last_answer is None:
                await asyncio.sleep(0.01)
        scene.line.cut = "no route"
        scene.agent._session._soon.set()
        async with asyncio.timeout(20):
            while not (await scene.agent.shown()).trouble:
                await asyncio.sleep(0.01)
        assert scene.agent.state == "member"
        scene.line.cut = ""
        async with asyncio.timeout(20):
            while (await scene.agent.shown()).trouble:
                await asyncio.sleep(0.01)


async def test_who_waits_for_approval_is_told_of_nobody(scene: Scene) -> None:
    await scene.neighbour("visby")
    scene.hub.settings_for = lambda cluster: ({"jobs": {"cpu": "2"}}, ())
    scene.line.approve = False
    await scene.join()
    await scene.look()
    assert (scene.cluster.neighbours, scene.cluster.settings) == ((), {})
    record = replace(acting.get(scene.hub, "lubeck").record, state="ready", desired=NOW)
    assert await scene.hub.clusters.put(record) is not None
    await scene.look()
    await scene.beat()
    await scene.look()
    assert list(scene.cluster.neighbours) == ["visby"]
    assert scene.cluster.settings == {"jobs": {"cpu": "2"}}


async def test_a_hub_that_moved_is_found_where_the_settings_say(scene: Scene) -> None:
    await scene.join()
    await scene.restart(hub="https://elsewhere.test:7443/")
    assert (await scene.agent.shown()).hub == "https://elsewhere.test:7443"
    held = scene.line.held()
    assert held is not None
    assert held.hub == "https://elsewhere.test:7443"
    assert await scene.beat() is not None
