"""How does the whole look now? A picture of the inventory that `watch_inventory` keeps up to date, event by event.

picture = Picture()
for event in hub.watch_inventory():
    picture.apply(event)
    print(picture.total.jobs_running)
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping

import msgspec

from hansa.messages.inventory import Change, ClusterInventory, Inventory, InventoryEvent, Removed
from hansa.messages.members import Totals

_NOT_COUNTED = frozenset({"pending", "left"})  # they do not belong, so what they have is not the federation's
_MOST_CHANGES = 100


class Picture:
    def __init__(self) -> None:
        self.clusters: dict[str, ClusterInventory] = {}
        self.recent: deque[Change] = deque(maxlen=_MOST_CHANGES)  # newest last
        self.age = 0.0  # of the last whole picture: seconds since the hub was in step with its database
        self.complete = False  # whether there was a whole picture yet

    def apply(self, event: InventoryEvent) -> None:
        match event:
            case Inventory():
                self.clusters = {one.id: one for one in event.clusters}
                self.age, self.complete = event.age, True
            case ClusterInventory():
                self.clusters[event.id] = event
            case Removed():
                self.clusters.pop(event.id, None)
            case Change():
                self.recent.append(event)

    @property
    def by_state(self) -> Mapping[str, int]:
        return Counter(one.state for one in self.clusters.values())

    @property
    def total(self) -> Totals:
        """What all members have and use together."""
        return added_up(one.totals for one in self.clusters.values() if one.state not in _NOT_COUNTED)


def added_up(many: Iterable[Totals]) -> Totals:
    columns = zip(*map(msgspec.structs.astuple, many), strict=True)
    return Totals(**dict(zip(Totals.__struct_fields__, map(sum, columns), strict=False)))
