"""Where are the contents of volumes? Behind `VolumePlaces`: folders of this machine (`folders`), or claims in a
Kubernetes (`drivers/kubernetes/claims`). Rows, quotas and who may do what are `volumes`' own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from hansa.storage.records import Volume


@dataclass(frozen=True, slots=True)
class Place:
    """What an engine has to mount."""

    source: str  # a folder's path, or the name of a claim: whatever the engine beside it understands
    gid: int  # whoever runs with this group may write
    one_node: bool = False  # all who use it have to run on the same machine
    size: int = 0  # bytes it may hold; 0 if that is not for the engine to see to


@dataclass(frozen=True, slots=True)
class Standing:
    """How a volume is: `Bound` is there, `Pending` is not yet, `Lost` was. The words are Kubernetes' own."""

    phase: Literal["Bound", "Pending", "Lost"] = "Bound"
    reason: str = ""
    trouble: bool = False  # somebody has to do something about it


class VolumePlaces(Protocol):
    """Makes and removes what volumes keep their contents in. Every call may be repeated."""

    async def load(self, volumes: Sequence[Volume]) -> None:
        """At start, all there are: each gets its place if it has none. Contents stay."""
        ...

    async def make(self, volume: Volume) -> None:
        """An empty place; what an earlier volume of that name left is gone. Returns before it can be used, if that
        takes long: `standing` tells."""
        ...

    async def remove(self, namespace: str, name: str) -> None:
        """With its contents. What was never made is fine."""
        ...

    def place(self, namespace: str, name: str) -> Place: ...
    def standing(self, namespace: str, name: str) -> Standing:
        """As far as is known now; from memory."""
        ...
