"""What do managers know of each other? Every member's address, and who is no member any more.

A change reaches a manager with the next answer to its watch. With thousands of them one join would wake them all, so
changes are announced together: at once in a small federation, every few seconds in a large one.
"""

from hansa.federation.lifecycle import MEMBER
from hansa.federation.ports import ClusterRecord
from hansa.messages.members import Neighbour

_WAKE_UPS = 500  # managers we are willing to wake in a second
_MOST_TOLD = 16


class Directory:
    def __init__(self) -> None:
        self._entries: dict[str, tuple[Neighbour, int]] = {}
        self._gone: dict[str, int] = {}
        self.version = 0
        self.announced = 0
        self._announced_at = 0.0
        self._restored = 0
        self._told: dict[int, tuple[tuple[Neighbour, ...], tuple[str, ...], bool]] = {}  # by what was asked with

    def begin(self, restored: int = 0) -> None:
        """Everything there is was learned, with its versions. Managers that were told of it by a former process, or by
        another, need not hear it again: after a restart thousands ask at once. But who heard what was before a backup
        was restored hears all: clusters that joined after the backup are none any more."""
        self._restored = restored
        self._told.clear()
        self.announced = self.version = max(self.version, restored)

    def learn(self, record: ClusterRecord) -> None:
        entry = Neighbour(
            id=record.id, kind=record.kind, endpoint=record.endpoint, verify=record.verify, state=record.state
        )
        former = self._entries.get(record.id)
        if record.state not in MEMBER:
            if former is not None or record.state == "left":
                self.forget(record.id, record.version)
            return
        if former is not None and _same(former[0], entry):
            return
        self._entries[record.id] = (entry, record.version)
        self._gone.pop(record.id, None)
        self._told.clear()
        self.version = max(self.version, record.version)

    def forget(self, cluster: str, version: int) -> None:
        if self._entries.pop(cluster, None) is not None or version > self._gone.get(cluster, 0):
            self._gone[cluster] = version
            self._told.clear()
            self.version = max(self.version, version)

    def announce(self, now: float, learned: int) -> bool:
        """Whether managers should be woken now; `learned` is the version up to which everything is known."""
        version = min(self.version, learned)
        if version <= self.announced or now - self._announced_at < len(self._entries) / _WAKE_UPS:
            return False
        self.announced, self._announced_at = version, now
        return True

    def since(self, after: int, without: str) -> tuple[tuple[Neighbour, ...], tuple[str, ...], bool]:
        """(those that changed, those that are gone, whether the first are all there are). When a record last changed is
        known, not where: some may be told for nothing."""
        found, gone, whole = self._told.get(after) or self._look(after)
        return tuple(one for one in found if one.id != without), gone, whole

    def _look(self, after: int) -> tuple[tuple[Neighbour, ...], tuple[str, ...], bool]:
        """Once for all who are equally far: an announcement lets thousands ask at once, mostly for the same."""
        whole = after <= 0 or after < self._restored
        found = tuple(entry for entry, version in self._entries.values() if whole or version > after)
        gone = () if whole else tuple(cluster for cluster, version in self._gone.items() if version > after)
        if len(self._told) >= _MOST_TOLD:
            self._told.clear()
        self._told[after] = found, gone, whole
        return self._told[after]


def _same(one: Neighbour, other: Neighbour) -> bool:
    """States come and go, and managers see for themselves who answers; what matters is who is where."""
    return (one.kind, one.endpoint, one.verify) == (other.kind, other.endpoint, other.verify)
