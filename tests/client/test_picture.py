"""A picture kept by events shows what a fresh one would."""

from hansa.client import Picture
from hansa.client.picture import added_up
from hansa.messages.clusters import State
from hansa.messages.inventory import Change, ClusterInventory, Inventory, Removed
from hansa.messages.members import Totals


def cluster(name: str, state: State = "ready", **totals: int) -> ClusterInventory:
    return ClusterInventory(id=name, kind="hansa", state=state, region="eu", zone="", seen=1, totals=Totals(**totals))


def test_events_change_it() -> None:
    picture = Picture()
    assert not picture.complete
    one, two = cluster("lubeck", cpu=4000, gpu=1), cluster("visby", cpu=2000)
    picture.apply(Inventory(at=1, age=0.5, clusters=(one, two), regions={}, total=Totals()))
    assert (picture.complete, picture.age, picture.total.cpu) == (True, 0.5, 6000)
    picture.apply(cluster("visby", "unreachable", cpu=3000))
    picture.apply(cluster("riga", "pending", cpu=9000))
    assert (picture.total.cpu, picture.total.gpu) == (7000, 1)
    assert picture.by_state == {"ready": 1, "unreachable": 1, "pending": 1}
    picture.apply(Removed(id="lubeck"))
    picture.apply(Removed(id="lubeck"))
    assert sorted(picture.clusters) == ["riga", "visby"]
    for number in range(200):
        picture.apply(Change(id=number, at=1, cluster="", kind="x", detail=""))
    assert (len(picture.recent), picture.recent[-1].id) == (100, 199)


def test_nothing_adds_up_to_nothing() -> None:
    assert added_up([]) == Totals()
