"""A manager and a hub one version apart: what one of them does not know is left aside, what it misses is not needed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
import pytest

from federation.member.scene import ADMIN, Line, Scene
from hansa.federation import acting
from hansa.messages import Message
from hansa.messages.clusters import Facts
from hansa.messages.members import SPEAKS, Desired, Heard, Heartbeat, Joined

T = TypeVar("T")


class Tides(Message, frozen=True, kw_only=True):
    """A section of a later version."""

    high: bool = True


def newer(value: Any) -> Any:
    """With fields we have never heard of, at every depth; some fields hold whatever people put there."""
    if isinstance(value, list):
        return [newer(one) for one in value]
    if not isinstance(value, dict):
        return value
    grown = {key: one if key in ("settings", "sections", "metadata") else newer(one) for key, one in value.items()}
    return {**grown, "tide": {"high": [1, 2]}}


def older(*needed: str) -> Callable[[Any], Any]:
    """With nothing but what there always was."""
    return lambda value: {key: value[key] for key in needed if key in value}


@dataclass
class OtherVersion(Line):
    """Changes what the hub says on its way to the manager, and the other way round."""

    down: dict[type, Callable[[Any], Any]] = field(default_factory=dict)
    up: Callable[[Any], Any] = lambda value: value

    async def join(self, hub: str, token: str, cluster: str, facts: Facts) -> Joined:
        told = msgspec.convert(self.up(msgspec.to_builtins(facts)), Facts)
        return self._arrives(await super().join(hub, token, cluster, told), Joined)

    async def heartbeat(self, beat: Heartbeat) -> Heard:
        sent = msgspec.json.encode(self.up(msgspec.json.decode(msgspec.json.encode(beat))))
        return self._arrives(await super().heartbeat(msgspec.json.decode(sent, type=Heartbeat)), Heard)

    async def desired(self, after: int, wait: float) -> Desired | None:
        found = await super().desired(after, wait)
        return None if found is None else self._arrives(found, Desired)

    def _arrives(self, said: Any, kind: type[T]) -> T:
        changed = self.down.get(kind, lambda value: value)(msgspec.to_builtins(said))
        return msgspec.json.decode(msgspec.json.encode(changed), type=kind)


async def with_line(scene: Scene, **how: Any) -> OtherVersion:
    line = OtherVersion(scene.hub, scene.clock, **how)
    scene.line = line
    await scene.restart()
    return line


async def lives_a_member_life(scene: Scene) -> None:
    """Joins, reports twice, is cordoned, learns of a neighbour, leaves."""
    await scene.neighbour("visby")
    await scene.join()
    assert await scene.beat() is not None
    await acting.cordon(scene.hub, ADMIN, "lubeck", on=True)
    assert await scene.look()
    assert scene.cluster.duty == (True, False)
    assert list(scene.cluster.neighbours) == ["visby"]
    assert await scene.beat() is not None
    assert acting.get(scene.hub, "lubeck").totals.cpu == 4000
    assert (await scene.agent.shown()).state == "member"
    await scene.agent.leave(force=True)


async def test_a_newer_hub(scene: Scene) -> None:
    await with_line(scene, down=dict.fromkeys((Joined, Heard, Desired), newer))
    await lives_a_member_life(scene)


async def test_a_newer_hub_with_states_of_its_own(scene: Scene) -> None:
    def hibernating(value: Any) -> Any:
        others = [{**one, "state": "hibernating", "kind": "cloud"} for one in value.get("neighbours", ())]
        return {**newer(value), "state": "hibernating", **({"neighbours": others} if others else {})}

    await with_line(scene, down=dict.fromkeys((Joined, Heard, Desired), hibernating))
    await lives_a_member_life(scene)


async def test_an_older_hub(scene: Scene) -> None:
    """That knows only the first fields of each message."""
    await with_line(
        scene,
        down={
            Heard: older("number", "desired", "every"),
            Desired: older("generation", "state", "cordoned", "neighbours"),
        },
    )
    await lives_a_member_life(scene)


async def test_a_newer_manager(scene: Scene) -> None:
    """What it reports is kept and shown, also what this hub does not know."""
    line = await with_line(scene, up=newer)
    scene.cluster.more["tides"] = Tides()
    await scene.join()
    await scene.beat()
    known = acting.get(scene.hub, "lubeck")
    assert known.sections["tides"][1] == b'{"high":true}'
    assert known.totals.cpu == 4000
    assert line.sent[-1].whole


@pytest.mark.parametrize("speaks", [(), SPEAKS, (*SPEAKS, "telepathy.v9")])
async def test_capabilities_nobody_knows_are_only_kept(scene: Scene, speaks: tuple[str, ...]) -> None:
    await with_line(scene, up=lambda value: {**value, "speaks": list(speaks)} if "speaks" in value else value)
    await lives_a_member_life(scene)


async def test_an_older_manager(scene: Scene) -> None:
    """It tells less: no number of what was answered, no facts with its heartbeats."""
    keep = older("incarnation", "number", "sections", "reports", "whole", "name", "endpoint", "version")
    await with_line(scene, up=keep)
    await lives_a_member_life(scene)
