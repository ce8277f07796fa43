"""Who joins with a good token is let in, waits, or is refused, as the admission policy says."""

from pathlib import Path

import pytest

from hansa.federation import acting, errors, joining, policies
from hansa.identity import authority
from hansa.messages.clusters import Facts
from hansa.messages.members import Join
from hansa.messages.policies import NewPolicy
from real.hub_door import ADMIN, HubDoor, hub_door


async def join(door: HubDoor, name: str, region: str, *, approve: bool, token: str = "") -> str:
    """The state it is in then."""
    request = authority.new_request(name).request
    shown = token or await door.token(approve=approve)
    await joining.join(door.hub, Join(token=shown, cluster=name, request=request, facts=Facts(region=region)))
    return acting.get(door.hub, name).record.state


async def test_the_door_is_as_the_policy_says(tmp_path: Path) -> None:
    async with hub_door(tmp_path) as door:
        assert await join(door, "lubeck", "us", approve=True) == "ready"
        rules = {"approve": "region=eu", "tokens": False, "required": "region!=asia"}
        await policies.changing.put(door.hub, ADMIN, "door", NewPolicy(kind="admission", rules=rules))
        assert await join(door, "visby", "eu", approve=False) == "ready"
        assert acting.get(door.hub, "visby").record.reason == "it has just joined, approved by policy: region=eu"
        assert await join(door, "boston", "us", approve=True) == "pending"
        token = await door.token(approve=True)
        with pytest.raises(errors.NotAdmitted, match="region!=asia is required"):
            await join(door, "osaka", "asia", approve=True, token=token)
        await policies.changing.remove(door.hub, ADMIN, "door")
        assert await join(door, "osaka", "asia", approve=True, token=token) == "ready", "the token was not used up"
