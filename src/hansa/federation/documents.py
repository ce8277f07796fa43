"""What is a document, and who remembers it? Configuration and policies; every version stays.

`store/hub` implements the two ports. A new version and the rollout that spreads it are written together, with what is
to be told of it; whoever decided on what is no longer so gets None and decides anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from msgspec import Struct

from hansa.federation.ports import Fence, Note
from hansa.messages.configuration import RolloutState, Stages

Sort = Literal["config", "policy"]


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """One version of one document."""

    sort: Sort
    name: str
    version: int
    body: Mapping[str, Any] = field(default_factory=dict)
    author: str = ""
    comment: str = ""
    created: float = 0.0  # set where it is written, by the database's clock
    removed: bool = False
    seq: int = 0  # the hub's version it came with


class Given(Struct, frozen=True, array_like=True):
    """That a cluster was given a new version. Written with all others of its rollout, so it is short."""

    at: float  # when its time to take it began
    well: bool  # how it was then
    here: bool  # whether it was heard then
    away: float | None = None  # since when it is not heard any more
    took: float | None = None  # when it was first seen with it
    excused: str = ""  # what it complained of already


class RolloutRecord(Struct, frozen=True, kw_only=True):
    """How a version of a document spreads, and who has it. `configuration.stepping` takes it on."""

    id: int = 0
    document: str
    version: int
    former: int  # what everybody else has; 0 is nothing
    state: RolloutState = "running"
    stage: int = 0
    since: float  # when it got into this state of this stage
    reason: str = ""
    stages: Stages
    goal: int = -1  # how many clusters should have it at this stage; negative: it has not begun
    given: dict[str, Given] = {}
    kept: dict[str, int] = {}  # clusters with another version than `former`, from a rollout that was not finished
    failed: dict[str, str] = {}  # those that stopped it, and why
    seq: int = 0


def assigned(rollout: RolloutRecord | None, cluster: str) -> int:
    """The version of the document this cluster should have; 0 is none. Whether that means it is another question."""
    if rollout is None:
        return 0
    if rollout.state == "done" or cluster in rollout.given:
        return rollout.version
    return rollout.kept.get(cluster, rollout.former)


class Documents(Protocol):
    """All versions of all documents."""

    async def after(self, seq: int) -> Sequence[DocumentRecord]:
        """Those that came with a later version of the hub, oldest first."""
        ...

    async def add(
        self,
        record: DocumentRecord,
        *notes: Note,
        opens: RolloutRecord | None = None,
        closes: RolloutRecord | None = None,
    ) -> tuple[DocumentRecord, RolloutRecord | None] | None:
        """Writes the next version, with the rollout it opens and the one it ends; None if it is not the next one any
        more, or the rollout went on meanwhile."""
        ...


class Rollouts(Protocol):
    """Of each document the newest rollout counts; the others are history."""

    async def after(self, seq: int) -> Sequence[RolloutRecord]: ...

    async def put(self, record: RolloutRecord, *notes: Note, fence: Fence | None = None) -> RolloutRecord | None:
        """Writes it if it still is at `record.seq`; None if it went on meanwhile. Raises `LeaseLost`."""
        ...

    async def tidy(self, keep: int, fence: Fence) -> None:
        """Of each document the last `keep` that are over stay, besides the one that counts; older ones go."""
        ...
