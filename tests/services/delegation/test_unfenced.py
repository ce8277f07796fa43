"""A job at a member that knew no permits is asked about with credentials of a person: only while the member is such a
one, whatever it was when it got the job.
"""

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hansa.services import Address, AwayJob, Service
from hansa.services.delegation import NOBODY, Delegation
from hansa.services.delegation.following import Follower, _listed_log, live_log
from hansa.services.replicas import NotItself

TODAY = frozenset({"delegation-permits", "replica-keys"})
UNFENCED = Delegation("one", 1, "away", "visby", "gray", "https://visby", "p" * 64, NOBODY, {"fenced": False}, 0.0, 0.0)


class Asked:
    """A member that says this of itself, and what it was asked with."""

    def __init__(self, *says: str) -> None:
        self.address = Address("visby", "https://visby")
        self.by: list[str] = []
        self._says = frozenset(says)

    async def capabilities(self) -> frozenset[str]:
        return self._says

    def doubt(self) -> None: ...

    async def away_job(self, _job: str, permit: str) -> AwayJob:
        self.by.append(permit)
        return AwayJob("Running")

    async def listed_job(self, _service: str, _job: str, credentials: Any) -> AwayJob:
        self.by.append(credentials)
        return AwayJob("Running")

    async def away_log(self, _job: str, permit: str, *, timestamps: bool) -> str:
        self.by.append(permit)
        return "2026-01-01T00:00:00Z hello\n" if timestamps else "hello\n"

    async def listed_log(self, _service: str, _job: str, credentials: Any) -> str:
        self.by.append(credentials)
        return "hello\n"


def follower(*key_holders: str) -> Follower:
    async def add(_: str) -> None: ...

    async def job(_: str) -> Any:
        return SimpleNamespace(service="gray", ended=False)

    async def given(_: str) -> Delegation:
        return UNFENCED

    async def of_alice(*_: object, **__: object) -> list[str]:
        return ["of alice"]

    room = SimpleNamespace(
        clock=SimpleNamespace(now=lambda: 0.0),
        jobs=SimpleNamespace(get=job),
        delegations=SimpleNamespace(get=given),
        records=SimpleNamespace(get=lambda _: SimpleNamespace(service=Service(name="gray"))),
        key_holders=SimpleNamespace(add=add, known=lambda cluster: cluster in key_holders),
        keyring=SimpleNamespace(credentials=of_alice),
        limits=SimpleNamespace(oscar_members=True),
    )
    return Follower(cast(Any, room), lost_after=1.0)


async def ask(member: Asked, *key_holders: str) -> list[str]:
    asking = follower(*key_holders)
    await asking._listed(cast(Any, member), UNFENCED)
    await _listed_log(asking.room, cast(Any, member), UNFENCED, timestamps=True)
    return member.by


async def test_an_oscar_is_asked_as_its_owner_and_a_hansa_by_permit() -> None:
    assert await ask(Asked()) == ["of alice"] * 2
    assert await ask(Asked(*TODAY)) == [UNFENCED.permit] * 2


@pytest.mark.parametrize(("says", "key_holders"), [(["replica-keys"], []), (["mesh-tokens"], []), ([], ["visby"])])
async def test_who_poses_as_less_than_it_is_is_asked_nothing(says: list[str], key_holders: list[str]) -> None:
    poser = Asked(*says)
    asking = follower(*key_holders)
    with pytest.raises(NotItself):
        await asking._listed(cast(Any, poser), UNFENCED)
    with pytest.raises(NotItself):
        await _listed_log(asking.room, cast(Any, poser), UNFENCED, timestamps=True)
    assert poser.by == []


@pytest.mark.parametrize(("says", "by"), [([], "of alice"), (TODAY, UNFENCED.permit)])
async def test_what_it_has_printed_so_far_is_asked_for_in_the_same_way(says: Collection[str], by: str) -> None:
    member = Asked(*says)
    room = follower().room
    cast(Any, room).peers = SimpleNamespace(find=lambda *_: member)
    assert await live_log(room, "one", timestamps=False) == "hello\n"
    stamped = await live_log(room, "one", timestamps=True)
    assert stamped is not None
    assert stamped.endswith("Z hello\n")
    assert member.by == [by, by]
