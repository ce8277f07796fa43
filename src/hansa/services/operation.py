"""The record of a change that touches several clusters, and which steps it may take.

applying → committed, or applying → undoing → undone. The plan holds, for every member, what was there before we
touched it; it is written before the touch, so that whatever happens the former state can be put back exactly.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

State = Literal["applying", "committed", "undoing", "undone"]
OPEN: tuple[State, ...] = ("applying", "undoing")


@dataclass(frozen=True, slots=True)
class Touched:
    """One member in the plan."""

    cluster_id: str
    endpoint: str
    service_name: str
    before: dict[str, Any] | None  # its definition as it was, None if it had none
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


def new_id() -> str:
    return f"op-{uuid.uuid4().hex}"


class Operations(Protocol):
    """Where operations are remembered; every write is durable when it returns."""

    async def add(self, operation: Operation) -> None: ...
    async def save(self, operation: Operation, *, expected: State) -> bool:
        """False if its state is another by now: somebody else decided."""
        ...

    async def get(self, ident: str) -> Operation | None: ...
    async def open(self) -> Sequence[Operation]: ...
    async def of(self, subject: str, most: int = 20) -> Sequence[Operation]: ...
