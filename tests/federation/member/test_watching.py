"""What the hub wants is done, written down and acknowledged; what cannot be done is said, and nothing else is lost."""

import asyncio

import msgspec
import pytest

from federation.member.scene import ADMIN, Scene
from hansa.federation import acting, member
from hansa.messages.members import Applied, Desired, Neighbour, Setting


def applied(scene: Scene) -> Applied:
    return scene.agent._watch.applied(scene.cluster.work)


async def test_cordon_drain_and_back(scene: Scene) -> None:
    await scene.join()
    await acting.cordon(scene.hub, ADMIN, "lubeck", on=True)
    await scene.look()
    assert scene.cluster.duty == (True, False)
    await acting.drain(scene.hub, ADMIN, "lubeck")
    scene.cluster.work = member.Progress(1, 2)
    await scene.look()
    assert scene.cluster.duty == (True, True)
    told = applied(scene)
    assert (told.drained, told.running, told.waiting) == (False, 1, 2)
    scene.cluster.work = member.Progress(0, 0)
    assert applied(scene).drained
    await acting.cordon(scene.hub, ADMIN, "lubeck", on=False)
    await scene.look()
    assert scene.cluster.duty == (False, False)
    assert not applied(scene).drained


async def test_neighbours_come_and_go(scene: Scene) -> None:
    await scene.neighbour("visby")
    await scene.join()
    await scene.look()
    assert list(scene.cluster.neighbours) == ["visby"]
    await scene.neighbour("riga")
    await scene.look()
    assert list(scene.cluster.neighbours) == ["riga", "visby"]
    await acting.remove(scene.hub, ADMIN, "visby", force=True)
    await scene.look()
    assert list(scene.cluster.neighbours) == ["riga"]


async def test_refused_settings_leave_the_former_in_force_and_are_tried_again(scene: Scene) -> None:
    await scene.join()
    scene.hub.settings_for = lambda cluster: ({"jobs": {"cpu": "1"}}, (Setting(name="base", version=1),))
    await acting.cordon(scene.hub, ADMIN, "lubeck", on=True)
    await scene.look()
    assert applied(scene).documents == (Setting(name="base", version=1),)
    scene.cluster.refuse = "jobs.cpu: this machine has 2 cores"
    scene.hub.settings_for = lambda cluster: ({"jobs": {"cpu": "99"}}, (Setting(name="base", version=2),))
    await acting.cordon(scene.hub, ADMIN, "lubeck", on=False)
    await scene.look()
    told = applied(scene)
    assert told.error == "jobs.cpu: this machine has 2 cores"
    assert told.documents == (Setting(name="base", version=1),)
    assert told.tried == (Setting(name="base", version=2),)
    assert told.generation == scene.agent._watch.generation
    assert scene.cluster.settings == {"jobs": {"cpu": "1"}}
    assert scene.cluster.duty == (False, False)  # what else came with it is done

    await scene.restart()
    assert scene.cluster.settings == {"jobs": {"cpu": "1"}}
    assert applied(scene).error

    scene.cluster.refuse = ""
    assert await scene.agent._session.look(0)
    assert (applied(scene).error, scene.cluster.settings) == ("", {"jobs": {"cpu": "99"}})


async def test_settings_that_are_told_no_more_go_back(scene: Scene) -> None:
    await scene.join()
    scene.hub.settings_for = lambda cluster: ({"jobs": {"cpu": "1"}}, (Setting(name="base", version=1),))
    await acting.cordon(scene.hub, ADMIN, "lubeck", on=True)
    await scene.look()
    scene.hub.settings_for = lambda cluster: ({}, ())
    await acting.cordon(scene.hub, ADMIN, "lubeck", on=False)
    await scene.look()
    assert (scene.cluster.settings, applied(scene).documents) == ({}, ())


async def test_a_refusal_is_reported_once(scene: Scene) -> None:
    await scene.join()
    scene.cluster.refuse = "jobs.cpu: this machine has 2 cores"
    scene.hub.settings_for = lambda cluster: ({"jobs": {"cpu": "99"}}, ())
    for on in (True, False, True):
        await acting.cordon(scene.hub, ADMIN, "lubeck", on=on)
        await scene.look()
    await scene.beat()
    assert [one.kind for one in scene.line.sent[-1].reports].count("config-refused") == 1


async def test_roots_are_trusted_when_they_change(scene: Scene) -> None:
    await scene.join()
    scene.hub.roots = lambda: ("one root", 10**6)
    await scene.look()
    assert scene.line.roots == "one root"


async def test_what_a_newer_hub_says_is_understood_as_far_as_it_goes(scene: Scene) -> None:
    """Fields and states we do not know are left aside."""
    await scene.join()
    body = b"""{"generation": 9000000, "state": "hibernating", "cordoned": true, "tide": {"high": true},
        "neighbours": [{"id": "visby", "kind": "starship", "endpoint": "http://visby.test", "verify": true,
                        "state": "orbiting", "warp": 9}]}"""
    assert await scene.agent._watch.take(msgspec.json.decode(body, type=Desired), 0)
    assert (scene.cluster.neighbours, scene.cluster.duty) == (("visby",), (True, False))


async def test_an_answer_that_comes_after_a_start_over_does_not_stand_for_all_there_is(scene: Scene) -> None:
    """As when a heartbeat says that we were approved while a question from before still waits for its answer."""
    await scene.join()
    watch = scene.agent._watch
    asked_in, late = watch.round, Desired(generation=1000, state="ready", whole=False)
    watch.start_over()
    await watch.take(late, asked_in)
    assert watch.generation == 0, "all there is will still be asked for"
    await watch.take(late, watch.round)
    assert watch.generation == 1000


def told(generation: int, *neighbours: Neighbour, whole: bool) -> Desired:
    return Desired(generation=generation, state="ready", neighbours=neighbours, whole=whole)


def neighbour(ident: str, endpoint: str = "https://some.test", **more: str) -> Neighbour:
    given = {"kind": "hansa", "state": "ready", **more}
    return Neighbour(id=ident, endpoint=endpoint, verify=True, **given)


def many(first: int, count: int) -> list[Neighbour]:
    return [neighbour(f"n{number}") for number in range(first, first + count)]


async def test_no_number_of_answers_makes_more_neighbours_than_one_could(scene: Scene) -> None:
    await scene.join()
    watch = scene.agent._watch
    assert await watch.take(told(1000, *many(0, 15_000), whole=True), watch.round)
    assert await watch.take(told(1001, *many(15_000, 5_000), whole=False), watch.round)
    assert len(scene.cluster.neighbours) == 20_000
    assert not await watch.take(told(1002, neighbour("one-more"), whole=False), watch.round)
    assert watch.generation == 0, "all there is is asked for"
    assert "one-more" not in scene.cluster.neighbours
    assert await watch.take(told(1002, neighbour("one-more"), whole=True), watch.round)
    assert (scene.cluster.neighbours, watch.generation) == (("one-more",), 1002)


@pytest.mark.parametrize("whole", [True, False])
async def test_neighbours_that_no_hub_takes_in_are_left_out(scene: Scene, whole: bool) -> None:
    await scene.join()
    watch = scene.agent._watch
    odd = [
        neighbour("x" * 64),
        neighbour("no name"),
        neighbour(""),
        neighbour("far", "https://far.test/" + "x" * 1024),
        neighbour("kind", kind="x" * 64),
        neighbour("state", state="x" * 64),
    ]
    await watch.take(told(1000, *odd, neighbour("x" * 63), whole=whole), watch.round)
    assert scene.cluster.neighbours == ("x" * 63,)


async def test_a_hub_that_lets_us_go_while_it_tells_us_something_is_not_followed(scene: Scene) -> None:
    """What it told is put in force first, and then nothing of it is."""
    await scene.join()
    watch = scene.agent._watch
    taking = asyncio.create_task(watch.take(told(1000, *many(0, 1000), whole=True), watch.round))
    await asyncio.sleep(0)
    await watch.let_go()
    await taking
    assert (scene.cluster.neighbours, watch.desired, watch.generation) == ((), None, 0)
