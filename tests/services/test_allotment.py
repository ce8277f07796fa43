"""Does everybody get as many services as the quota says, and no more, however they come?"""

from contextlib import ExitStack

import pytest

from hansa.kernel.quota import QuotaSettings
from hansa.resources import Limits
from hansa.services import Allotment, Record, Service
from hansa.services.errors import ServiceQuota

LIMITS = Limits.of(QuotaSettings(services=3, definitions="10Ki", shared_definitions="4Ki"))


def service(name: str, owner: str = "alice", script: str = "echo", visibility: str = "private") -> Service:
    return Service(name=name, owner=owner, image="debian", script=script, visibility=visibility)


def kept(*services: Service) -> list[Record]:
    return [Record(one, 1, "ready", False, (), 0.0, 0.0) for one in services]


def enforced(owner: str) -> Limits | None:
    return None if owner == "admin" else LIMITS


def test_so_many_and_no_more() -> None:
    two, three = kept(service("a"), service("b"), service("x", "bob")), kept(*map(service, "abc"))
    with Allotment(enforced).entering(service("c"), two):
        pass
    with pytest.raises(ServiceQuota, match="quota of 3 services"), Allotment(enforced).entering(service("d"), three):
        pass
    with Allotment(enforced).entering(service("d", "bob"), three):
        pass
    with Allotment(enforced).entering(service("d", "admin"), kept(*(service(n, "admin") for n in "abcdef"))):
        pass


def test_those_that_come_at_once_are_counted() -> None:
    allotment = Allotment(enforced)
    with ExitStack() as under_way:
        for name in "abc":
            under_way.enter_context(allotment.entering(service(name), []))
        with pytest.raises(ServiceQuota):
            under_way.enter_context(allotment.entering(service("d"), []))
        under_way.enter_context(allotment.entering(service("d", "bob"), []))
    with allotment.entering(service("d"), []):
        pass
    with allotment.entering(service("a"), []), allotment.entering(service("b"), kept(*map(service, "ab"))):
        pass  # there already, and still under way


def test_definitions_have_a_size_together() -> None:
    allotment, long = Allotment(enforced), "x" * 6000
    there = kept(service("a", script=long), service("b", "bob", script=long))
    with pytest.raises(ServiceQuota, match="quota of 10Ki"), allotment.entering(service("c", script=long), there):
        pass
    allotment.check_size(service("a", script=long[::-1]), there)  # it takes the place of the former
    with pytest.raises(ServiceQuota):
        allotment.check_size(service("a", script=2 * long), there)
    allotment.check_size(service("a", "admin", script=9 * long), there)


def test_others_are_shown_less() -> None:
    allotment, some = Allotment(enforced), "x" * 1000
    there = kept(service("a", script=some, visibility="public"), service("b", "bob", script=some, visibility="public"))
    for visibility in ("public", "restricted"):
        with pytest.raises(ServiceQuota, match="quota of 4Ki for definitions that others see"):
            allotment.check_size(service("c", script=2 * some, visibility=visibility), there)
    allotment.check_size(service("c", script=2 * some), there)  # for oneself
    allotment.check_size(service("a", "admin", script=9 * some, visibility="public"), there)


def test_who_has_more_than_a_new_quota_may_still_make_it_less() -> None:
    allotment, long = Allotment(enforced), "x" * 4000
    there = kept(*(service(name, script=long, visibility="public") for name in "ab"))
    allotment.check_size(service("a", script=long[::-1], visibility="public"), there)
    allotment.check_size(service("a", script="true", visibility="public"), there)
    with pytest.raises(ServiceQuota, match="others see"):
        allotment.check_size(service("a", script=long + "x", visibility="public"), there)
