"""What a manager tells its hub, and when: only what changed, all of it when asked, nothing lost while it is cut off."""

import asyncio

import pytest

from federation.member.scene import ADMIN, LIFE, Scene
from hansa.federation import acting, member
from hansa.federation.acting import get
from hansa.messages.members import Heartbeat, Totals


def sections(beat: Heartbeat) -> set[str]:
    return set(beat.sections)


async def test_the_first_heartbeat_has_every_section_and_the_next_only_news(scene: Scene) -> None:
    await scene.join()
    await scene.beat()
    await scene.beat()
    scene.cluster.totals = Totals(nodes=1, cpu=4000, cpu_used=1000)
    await scene.beat()
    first, second, third = scene.line.sent
    assert first.whole
    assert sections(first) == {"totals", "health", "applied", "links"}
    assert (second.whole, sections(second)) == (False, set())
    assert sections(third) == {"totals"}
    assert get(scene.hub, "lubeck").totals.cpu_used == 1000


async def test_what_was_not_answered_is_sent_again(scene: Scene) -> None:
    await scene.join()
    await scene.beat()
    scene.cluster.totals = Totals(nodes=1, services=7)
    scene.line.cut = "a cable is out"
    assert await scene.beat() is None
    assert scene.agent._session.trouble == "a cable is out"
    scene.line.cut = ""
    await scene.beat()
    assert sections(scene.line.sent[-1]) == {"totals"}
    assert get(scene.hub, "lubeck").totals.services == 7
    assert (await scene.agent.shown()).trouble == ""


async def test_a_hub_that_forgot_asks_for_all(scene: Scene) -> None:
    await scene.join()
    await scene.beat()
    known = get(scene.hub, "lubeck")  # it restarted before it wrote them down
    known.sections.clear()
    known.complete = False
    heard = await scene.beat()
    assert heard is not None
    assert heard.whole
    await scene.beat()
    assert scene.line.sent[-1].whole
    assert set(get(scene.hub, "lubeck").sections) == {"totals", "health", "applied", "links"}


async def test_numbers_grow_over_restarts_and_when_the_clock_is_set_back(scene: Scene) -> None:
    await scene.join()
    await scene.beat()
    scene.clock.time -= 86_400
    await scene.restart()
    await scene.beat()
    scene.clock.time += 10 * 86_400
    await scene.restart()
    await scene.beat()
    numbers = [beat.number for beat in scene.line.sent]
    assert numbers == sorted(set(numbers))
    assert all(beat.whole for beat in scene.line.sent)


async def test_reports_are_kept_until_the_hub_has_written_them_down(scene: Scene) -> None:
    await scene.join()
    scene.line.cut = "a cable is out"
    for number in range(3):
        await scene.agent.report("noticed", f"thing {number}")
    await scene.beat()
    await scene.restart()
    assert (await scene.agent.shown()).reports_waiting == 5  # joined, the three, started
    scene.line.cut = ""
    await scene.beat()
    assert (await scene.agent.shown()).reports_waiting == 5  # heard, but not written down when it answered
    await scene.beat()
    assert (await scene.agent.shown()).reports_waiting == 0
    told = [one.detail for one in await scene.hub.clusters.changes(cluster="lubeck") if one.kind == "noticed"]
    assert sorted(told) == ["thing 0", "thing 1", "thing 2"]  # each once


async def test_too_many_reports_lose_the_oldest_and_say_so(scene: Scene) -> None:
    await scene.join()
    await scene.restart(most_reports=10)
    for number in range(20):
        await scene.agent.report("noticed", str(number))
    shown = await scene.agent.shown()
    assert (shown.reports_waiting, shown.reports_dropped) == (10, 12)
    await scene.beat()
    assert [report.detail for report in scene.line.sent[-1].reports] == [str(number) for number in range(10, 20)]
    await scene.beat()
    assert (await scene.agent.shown()).reports_dropped == 0


async def test_parts_that_are_missing_degrade_the_cluster(scene: Scene) -> None:
    await scene.join()
    scene.cluster.gone = ["object store: no answer"]
    await scene.beat()
    assert b"object store" in get(scene.hub, "lubeck").sections["health"][1]


async def test_the_certificate_is_renewed_after_half_its_life(scene: Scene) -> None:
    await scene.join()
    session = scene.agent._session
    scene.clock.time += 0.49 * LIFE
    await session.tend()
    assert scene.line.renewals == 0
    scene.clock.time += 0.12 * LIFE
    await session.tend()
    await session.tend()
    assert scene.line.renewals == 1
    assert (await scene.agent.shown()).certificate_until == scene.clock.time + LIFE


async def test_a_certificate_that_cannot_be_renewed_is_a_worry_before_it_expires(scene: Scene) -> None:
    await scene.join()
    session = scene.agent._session
    scene.line.refuse_renewal = "the hub has no key"
    scene.clock.time += 0.7 * LIFE
    await session.tend()
    await scene.beat()
    assert b'missing":[]' in get(scene.hub, "lubeck").sections["health"][1]  # one failure is no news
    scene.clock.time += 0.1 * LIFE
    await session.tend()
    await scene.beat()
    assert b"cannot be renewed: the hub has no key" in get(scene.hub, "lubeck").sections["health"][1]
    scene.line.refuse_renewal = ""
    scene.clock.time += 0.05 * LIFE
    await session.tend()
    await scene.beat()
    assert b'missing":[]' in get(scene.hub, "lubeck").sections["health"][1]


async def test_it_is_renewed_at_once_when_the_hub_says_so(scene: Scene) -> None:
    await scene.join()
    scene.hub.renew = lambda cluster: scene.line.renewals == 0
    await acting.cordon(scene.hub, ADMIN, "lubeck", on=True)  # any news
    assert await scene.look()
    await scene.agent._session.tend()
    assert scene.line.renewals == 1


@pytest.mark.parametrize("gap", [1, 90])
async def test_a_hub_that_was_restored_is_believed_after_a_while(scene: Scene, gap: float) -> None:
    """Its generations begin earlier than what we know; of several hubs one may only lag for a moment."""
    await scene.join()
    await scene.look()
    watch = scene.agent._watch
    watch._generation += 1000
    await scene.beat()
    scene.clock.time += gap
    await scene.beat()
    await scene.look()
    assert (watch.generation < 1000) is (gap > 60)


async def test_a_part_that_hangs_is_reported_and_holds_up_no_heartbeat(scene: Scene) -> None:
    await scene.join()
    scene.cluster.hangs = True
    assert await scene.beat() is not None
    assert b"do not say within 2 s how they are" in get(scene.hub, "lubeck").sections["health"][1]


async def test_the_end_of_a_drain_is_reported_once(scene: Scene) -> None:
    await scene.join()
    await acting.drain(scene.hub, ADMIN, "lubeck")
    await scene.look()
    for running in (1, 0, 0):
        scene.cluster.work = member.Progress(running, 0)
        assert await scene.agent._session.finish() == ""
    await scene.beat()
    assert [one.kind for one in scene.line.sent[-1].reports].count("drained") == 1


async def test_a_hub_that_always_answers_at_once_is_not_asked_without_end(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.join()
    asked = 0

    async def desired(_after: int, _wait: float) -> None:
        nonlocal asked
        asked += 1

    monkeypatch.setattr(scene.line, "desired", desired)
    watching = asyncio.create_task(scene.agent._session._watching())
    for _ in range(5000):
        await asyncio.sleep(0)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    assert 1 < asked < 100
