"""How much fits here: a ledger of what was promised of this cluster's cpu, memory and disk.

Integers only, and every promise has a name, so nothing is promised twice and a release can be repeated.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from hansa.kernel import quantities

NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class Needs:
    cpu: int  # millicores
    memory: int  # bytes
    disk: int = 0  # bytes
    owner: str = ""  # whose share it takes

    def plus(self, other: "Needs") -> "Needs":
        return Needs(self.cpu + other.cpu, self.memory + other.memory, self.disk + other.disk)

    def minus(self, other: "Needs") -> "Needs":
        return Needs(self.cpu - other.cpu, self.memory - other.memory, self.disk - other.disk)

    def times(self, count: int) -> "Needs":
        return Needs(self.cpu * count, self.memory * count, self.disk * count, self.owner)

    def fits_into(self, free: "Needs") -> bool:
        return self.cpu <= free.cpu and self.memory <= free.memory and self.disk <= free.disk


@dataclass(frozen=True, slots=True)
class Node:
    """A machine of the cluster as it is now."""

    name: str
    cpu: int
    memory: int
    cpu_used: int
    memory_used: int
    cpu_requested: int = 0  # promised to what runs there
    memory_requested: int = 0
    ready: bool = True
    gpus: int = 0


@dataclass(slots=True)
class Ledger:
    """Promises against what all nodes have together."""

    cpu: int
    memory: int
    largest: Needs | None = None  # what one run can ever get, where what there is comes and goes
    disk: Callable[[], int] = lambda: NO_LIMIT  # others write to the same disk, so it is asked each time
    disk_most: int = NO_LIMIT
    lacked_disk: bool = False  # something waits that could begin if the disk had more room
    _held: dict[str, Needs] = field(default_factory=dict)
    _cpu_held: int = 0
    _memory_held: int = 0
    _disk_held: int = 0

    def could_ever_hold(self, needs: Needs) -> str:
        """Why this can never run here, or ""."""
        most = self.largest or Needs(self.cpu, self.memory)
        where = "this cluster has" if self.largest is None else "one node of this cluster gives at most"
        if needs.cpu > most.cpu:
            return f"it needs {needs.cpu}m cpu, {where} {most.cpu}m"
        if needs.memory > most.memory:
            wanted, there = quantities.show_apart(needs.memory, most.memory)
            return f"it needs {wanted} of memory, {where} {there}"
        if needs.disk > self.disk_most:
            show = quantities.show_size
            return f"it needs {show(needs.disk)} of disk, this cluster has {show(self.disk_most)}"
        return ""

    def hold(self, name: str, needs: Needs) -> bool:
        """True if it fits (or is held already)."""
        if name in self._held:
            return True
        if self._cpu_held + needs.cpu > self.cpu or self._memory_held + needs.memory > self.memory:
            return False
        if needs.disk and self._disk_held + needs.disk > self.disk():
            self.lacked_disk = True
            return False
        self._held[name] = needs
        self._add(needs, 1)
        return True

    def keep(self, name: str, needs: Needs) -> None:
        """What is held under this name is as much as this from now on."""
        if name in self._held:
            self.release(name)
            self._held[name] = needs
            self._add(needs, 1)

    def _add(self, needs: Needs, sign: int) -> None:
        self._cpu_held += sign * needs.cpu
        self._memory_held += sign * needs.memory
        self._disk_held += sign * needs.disk

    def holds(self, name: str) -> bool:
        return name in self._held

    def release(self, name: str) -> None:
        needs = self._held.pop(name, None)
        if needs is not None:
            self._add(needs, -1)

    @property
    def promised(self) -> Needs:
        return Needs(self._cpu_held, self._memory_held, self._disk_held)

    @property
    def free(self) -> Needs:
        return Needs(self.cpu - self._cpu_held, self.memory - self._memory_held, self.disk() - self._disk_held)
