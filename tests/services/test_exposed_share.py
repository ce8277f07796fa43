"""Do the exposed services of one owner fit into their quota together, also when they come together?"""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hansa.resources import NO_SHARE, Needs, Share
from hansa.services import Record, Room, Service, exposed_share
from hansa.services.errors import BeyondQuota
from hansa.services.service import Expose

SMALL = Share(1000, 2**30)


def service(name: str, cpu: str = "0.5", least: int = 1, owner: str = "alice", port: int = 80) -> Service:
    expose = Expose(min_scale=least, api_port=(port,) if port else ())
    return Service(name=name, image="i", script="s", cpu=cpu, memory="64Mi", owner=owner, expose=expose)


class Records:
    def __init__(self, *records: Record) -> None:
        self.known = {one.service.name: one for one in records}

    def get(self, name: str) -> Record | None:
        return self.known.get(name)

    def all(self) -> list[Record]:
        return list(self.known.values())

    async def add(self, one: Service) -> None:
        await asyncio.sleep(0)  # a database takes its time
        self.known[one.name] = record(one)


def record(one: Service, phase: Any = "ready", stopped: bool = False) -> Record:
    return Record(one, 1, phase, stopped, (), 1.0, 1.0)


def room(*records: Record, share: Share = SMALL) -> Room:
    made = SimpleNamespace(records=Records(*records), share_of=lambda owner: share, _locks={})
    made.changing = lambda name: Room.changing(cast(Room, made), name)
    return cast(Room, made)


def test_what_it_holds_is_its_minimum_scale_or_one() -> None:
    assert exposed_share.needs_of(service("a", least=3)) == Needs(1500, 3 * 64 * 2**20, 0, "alice")
    assert exposed_share.needs_of(service("a", least=0)).cpu == 500
    assert exposed_share.needs_of(service("a", port=0)) == Needs(0, 0)


def test_one_larger_than_the_quota_is_refused() -> None:
    with pytest.raises(BeyondQuota, match=r"with 3 instances: it needs 1500m cpu, your quota is 1000m"):
        exposed_share.check(room(), service("a", least=3))
    exposed_share.check(room(share=NO_SHARE), service("a", least=3))
    exposed_share.check(room(), service("a", port=0, cpu="9"))  # a job of it waits, and says why


def test_the_others_of_the_same_owner_count() -> None:
    there = record(service("b", least=2))
    with pytest.raises(BeyondQuota, match="of your quota of 1000m 0m are left"):
        exposed_share.check(room(there), service("a"))
    exposed_share.check(room(there), service("a", owner="bob"))
    exposed_share.check(room(record(there.service, stopped=True)), service("a"))
    exposed_share.check(room(record(there.service, "deleting")), service("a"))


def test_who_has_too_much_may_always_have_less() -> None:
    there, other = record(service("a", least=4)), record(service("b", least=4))
    exposed_share.check(room(there, other), service("a", least=3))
    with pytest.raises(BeyondQuota):
        exposed_share.check(room(there, other), service("a", least=5))
    with pytest.raises(BeyondQuota):  # it would start
        exposed_share.check(room(record(there.service, stopped=True)), there.service)


async def test_of_those_that_come_together_one_passes() -> None:
    here = room()

    async def create(name: str) -> bool:
        try:
            async with exposed_share.within_quota(here, service(name, cpu="0.6")):
                await cast(Any, here.records).add(service(name, cpu="0.6"))
        except BeyondQuota:
            return False
        return True

    assert sum(await asyncio.gather(*(create(name) for name in "abcd"))) == 1
