"""The record of a change that touches several clusters, and which steps it may take.

applying → committed, or applying → undoing → undone. What was there at a member before we touched it (its `before`) is
written down before the touch, so that whatever happens the former state can be put back exactly. A member may tell
anything as its `before`: each is kept beside the plan, which is written often and so stays small; an owner's have a
bound; and all of an operation's go in the write that ends it.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from hansa.services.burden import Burden

State = Literal["applying", "committed", "undoing", "undone"]
OPEN: tuple[State, ...] = ("applying", "undoing")


@dataclass(frozen=True, slots=True)
class Touched:
    """One member in the plan."""

    cluster_id: str
    endpoint: str
    service_name: str
    existed: bool  # whether it had a definition before, which is kept then
    undone: bool = False
    error: str = ""  # why it could not be applied, or not yet undone
    moved: str = ""  # why credentials of people are not shown at this address, if they are not

    @property
    def key(self) -> str:
        return f"{self.cluster_id}/{self.service_name}"


@dataclass(frozen=True, slots=True)
class Operation:
    id: str
    kind: Literal["create", "remove"]
    subject: str  # the coordinator's service
    owner: str
    state: State
    plan: tuple[Touched, ...]
    kept: Mapping[str, str] = field(repr=False)  # credentials for undoing after a crash; sealed in the store
    created: float
    updated: float

    def with_member(self, touched: Touched) -> "Operation":
        others = tuple(one for one in self.plan if one.key != touched.key)
        return replace(self, plan=(*others, touched))


@dataclass(frozen=True, slots=True)
class Outline:
    """As much of an operation as tells whether something is to be done about it now."""

    id: str
    state: State
    created: float
    updated: float


def new_id() -> str:
    return f"op-{uuid.uuid4().hex}"


class Operations(Protocol):
    """Where operations are remembered; every write is durable when it returns."""

    async def add(self, operation: Operation) -> None: ...
    async def save(self, operation: Operation, *, expected: State, befores: Mapping[str, bytes] | None = None) -> bool:
        """False if its state is another by now: somebody else decided. `befores` are kept too, by member, for as long
        as it is open."""
        ...

    async def before(self, ident: str, member: str) -> dict[str, Any] | None:
        """What was there at this member; None if nothing is kept."""
        ...

    async def burden(self, owner: str) -> Burden: ...

    async def get(self, ident: str) -> Operation | None: ...
    async def open(self) -> Sequence[Outline]:
        """All that have not ended, those first that nobody worked on for longest."""
        ...

    async def forget(self, before: float, most: int) -> int:
        """Drops those that ended before this time, at most so many; returns how many."""
        ...

    async def of(self, subject: str, most: int = 20) -> Sequence[Operation]: ...
