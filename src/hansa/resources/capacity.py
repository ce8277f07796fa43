"""How much fits here: a ledger of what was promised of this cluster's cpu and memory.

Integers only, and every promise has a name, so nothing is promised twice and a release can be repeated.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Needs:
    cpu: int  # millicores
    memory: int  # bytes


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
    _held: dict[str, Needs] = field(default_factory=dict)
    _cpu_held: int = 0
    _memory_held: int = 0

    def could_ever_hold(self, needs: Needs) -> str:
        """Why this can never run here, or ""."""
        most = self.largest or Needs(self.cpu, self.memory)
        where = "this cluster has" if self.largest is None else "one node of this cluster gives at most"
        if needs.cpu > most.cpu:
            return f"it needs {needs.cpu}m cpu, {where} {most.cpu}m"
        if needs.memory > most.memory:
            return f"it needs {needs.memory} bytes of memory, {where} {most.memory}"
        return ""

    def hold(self, name: str, needs: Needs) -> bool:
        """True if it fits (or is held already)."""
        if name in self._held:
            return True
        if self._cpu_held + needs.cpu > self.cpu or self._memory_held + needs.memory > self.memory:
            return False
        self._held[name] = needs
        self._cpu_held += needs.cpu
        self._memory_held += needs.memory
        return True

    def release(self, name: str) -> None:
        needs = self._held.pop(name, None)
        if needs is not None:
            self._cpu_held -= needs.cpu
            self._memory_held -= needs.memory

    @property
    def promised(self) -> Needs:
        return Needs(self._cpu_held, self._memory_held)

    @property
    def free(self) -> Needs:
        return Needs(self.cpu - self._cpu_held, self.memory - self._memory_held)
