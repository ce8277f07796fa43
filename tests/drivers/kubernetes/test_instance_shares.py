"""Do the instances of exposed services stay within their owner's share in Kubernetes?"""

from hansa.drivers.kubernetes.instance_shares import InstanceShares
from hansa.resources import Admission, Ledger, Needs, Share, Shares
from hansa.services import RunOrder, Service
from hansa.services.service import Expose


def order(least: int = 1, most: int = 1, name: str = "page", cpu: int = 300) -> RunOrder:
    expose = Expose(min_scale=least, max_scale=most, api_port=(80,))
    service = Service(name=name, image="i", script="s", owner="alice", expose=expose)
    return RunOrder(name, service, {}, {}, b"", cpu, 1, 60)


def admission(cpu: int = 1000) -> Admission:
    return Admission(Ledger(0, 0), shares=Shares(lambda _: Share(cpu)))  # Kubernetes finds the room


def test_as_many_as_the_share_takes_and_more_when_it_may() -> None:
    shared = admission()
    assert shared.try_hold("job", Needs(500, 0, 0, "alice"), room=False)
    instances = InstanceShares(shared)
    wanted = order(least=3)
    assert instances.settle(wanted, running=True) == 1
    assert "200m are left" in instances.why(wanted)
    assert instances.grow(wanted, 1) == 1
    shared.release("job")
    assert instances.grow(wanted, 1) == 3
    assert shared.shares.of("alice").cpu == 900


def test_another_definition_takes_the_place_of_the_former() -> None:
    shared = admission()
    instances = InstanceShares(shared)
    assert instances.settle(order(least=3), running=True) == 3
    assert instances.settle(order(least=2, cpu=500), running=True) == 2
    assert shared.shares.of("alice").cpu == 1000
    assert instances.settle(order(least=2, cpu=500), running=False) == 0
    assert shared.shares.of("alice").cpu == 0


def test_what_the_autoscaler_added_counts_and_its_bound_follows() -> None:
    shared = admission()
    instances, wanted = InstanceShares(shared), order(least=1, most=50)
    assert instances.settle(wanted, running=True) == 1
    assert instances.most(wanted) == 3
    instances.saw(wanted, pods=3)
    assert shared.shares.of("alice").cpu == 900
    assert not shared.try_hold("job", Needs(200, 0, 0, "alice"), room=False)
    assert instances.most(wanted) == 3  # its own do not stand in its way
    instances.saw(wanted, pods=1)
    assert shared.try_hold("job", Needs(500, 0, 0, "alice"), room=False)
    assert instances.most(wanted) == 1
    instances.forget("page")
    assert shared.shares.of("alice").cpu == 500


def test_what_is_only_being_made_counts_whatever_is_seen_of_the_former_definition() -> None:
    shared = admission()
    instances, former, wanted = InstanceShares(shared), order(least=1), order(least=9)
    assert instances.settle(former, running=True) == 1
    assert instances.settle(wanted, running=True) == 3
    instances.saw(former, pods=1)  # its pods are not there yet
    assert shared.shares.of("alice").cpu == 900
    assert instances.grow(wanted, 3) == 3
