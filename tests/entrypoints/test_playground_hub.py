"""The playground's clusters belong to its hub: once, again, and when the hub is another one than before."""

from pathlib import Path

import pytest

from hansa import settings
from hansa.entrypoints.playground import hub as joining
from hansa.entrypoints.playground import plan
from hansa.entrypoints.playground.hub import Hub
from hansa.entrypoints.playground.member import Member
from hansa.entrypoints.playground.server import NotStarted
from real import hub as real_hub
from real import manager as real_manager


def as_hub(running: real_hub.Hub, folder: Path) -> Hub:
    given = settings.load(env={"HANSA_ADMIN__PASSWORD": running.password, "HANSA_ADMIN__USER": real_hub.ADMIN})
    return Hub(plan.HubPlace(folder, running.port, running.members_port), given, {}, 0)


def as_member(running: real_manager.Manager, name: str, folder: Path) -> Member:
    given = settings.load(env={"HANSA_ADMIN__PASSWORD": running.password, "HANSA_ADMIN__USER": real_manager.ADMIN})
    return Member(plan.Place(name, folder, running.port, 0), given, {}, 0)


@pytest.mark.slow
async def test_joins_once_and_follows_the_hub(
    start_hub: real_hub.StartHub, start_manager: real_manager.StartManager, tmp_path: Path
) -> None:
    manager = start_manager({"cluster.id": "lubeck"})
    first, second = start_hub(), start_hub()
    member = as_member(manager, "lubeck", tmp_path)
    await joining.join(as_hub(first, tmp_path), [member])
    joined = first.cluster("lubeck")
    assert joined["seen"] is not None
    await joining.join(as_hub(first, tmp_path), [member])
    assert first.cluster("lubeck")["joined"] == joined["joined"]

    await joining.join(as_hub(second, tmp_path), [member])  # as if the first had been thrown away
    assert second.state("lubeck") == "ready"
    assert manager.admin.get("/v1/membership").json()["hub"] == second.members_url

    # the hub removed it, or its folder was thrown away: it gets its place back
    assert second.admin.delete("/v1/clusters/lubeck", params={"force": "true"}).status_code == 204
    await joining.join(as_hub(second, tmp_path), [member])
    assert second.state("lubeck") == "ready"

    stranger = as_member(manager, "visby", tmp_path)  # the token is not for the one who will show it
    manager.admin.delete("/v1/membership", params={"force": "true"})
    with pytest.raises(NotStarted, match="the manager of visby does not join the hub: ") as caught:
        await joining.join(as_hub(second, tmp_path), [stranger])
    assert "manager.log" in caught.value.hint
