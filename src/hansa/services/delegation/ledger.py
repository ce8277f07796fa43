"""What is remembered of jobs given away and of jobs taken in; `store/delegations.py` keeps it.

A delegation has an epoch. Whenever a job is taken back from somebody the epoch rises, and with it the permit changes:
a run of an older epoch can never publish its outputs again.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from hansa.resources import Invocation
from hansa.services.job import Job

Phase = Literal["offering", "away", "back", "done"]
NOBODY = -1  # no run has the right to publish yet
AT_HOME = 0  # the epoch of a job that was never given away
# How runs end that lost their right, at the member: the job itself has not ended by that, and may come back.
SUPERSEDED = "superseded by another run"
CALLED_OFF = "its origin ended it"
GIVEN_BACK = "given back to its origin: this cluster drains"
PASSED_BACK = "given back to its origin: keys to its data are where it was handed on to"
NOT_HERE = (GIVEN_BACK, PASSED_BACK)  # its origin is told that the job is not here, and takes it back
LOST = (SUPERSEDED, CALLED_OFF, *NOT_HERE)
ADOPTED, SERVICE, OVERDUE = "adopted", "service", "overdue"  # in a delegation's decision


@dataclass(frozen=True, slots=True)
class Delegation:
    """A job of ours at a member, or on its way there."""

    job: str
    epoch: int
    phase: Phase
    cluster_id: str
    service: str
    endpoint: str
    permit: str = field(repr=False)
    publisher: int
    decision: Mapping[str, Any]  # how each member was ranked or refused, and what each said
    heard: float
    given: float = 0.0  # when it was offered to this member, by our own clock
    running: float | None = None  # when this member was first heard to run it, by our own clock

    @property
    def fenced(self) -> bool:
        """Whether the member asks before it publishes, so that the job may safely be taken from it."""
        return bool(self.decision.get("fenced", True))

    @property
    def adopted(self) -> bool:
        """Whether it was submitted to the member: it is none of ours, and is never taken from there."""
        return bool(self.decision.get(ADOPTED, False))

    @property
    def of_service(self) -> str:
        """Our own, whose federation the member belongs to; "" if an older version gave the job away."""
        return str(self.decision.get(SERVICE, ""))

    @property
    def overdue(self) -> tuple[str, ...]:
        """Members that had this job for too long: none of them gets it again."""
        return tuple(self.decision.get(OVERDUE, ()))


@dataclass(frozen=True, slots=True)
class Receipt:
    """A job of another cluster that runs here; or one that was submitted here, whose data lives elsewhere."""

    job: str
    service: str  # whose job it is here; "" if that is gone
    origin: str
    endpoint: str
    path: tuple[str, ...]
    permit: str = field(repr=False)
    store: Mapping[str, str] = field(repr=False)  # endpoint, region, verify and keys of the origin's store
    created: float

    @property
    def ours(self) -> bool:
        """It was submitted here, and came from nobody."""
        return not self.path

    @property
    def lends(self) -> bool:
        """Whether whoever we hand the job on to gets keys that its origin lent us, and only its origin can end."""
        return not self.ours and bool(self.permit and self.store.get("access_key"))


@dataclass(frozen=True, slots=True)
class Parcel:
    """What comes with a job that is handed over."""

    job: str
    origin: str
    path: tuple[str, ...]
    permit: str = field(repr=False)


class Delegations(Protocol):
    """Every write is durable when it returns, and conditional: a late one changes nothing."""

    async def claim(self, fresh: Delegation) -> bool:
        """Pending and here → offering to this member, one epoch on. False if the job is not ours to give any more,
        or if a run is publishing already."""
        ...

    async def adopt(self, fresh: Delegation) -> bool:
        """A job that a member was given by others. False if one of that name is known."""
        ...

    async def accepted(self, job: str, epoch: int, now: float) -> bool:
        """offering → away."""
        ...

    async def take_back(
        self, job: str, epoch: int, decision: Mapping[str, Any], *, passed_back: float | None = None
    ) -> bool:
        """offering or away → here, one epoch on, so the member's run is fenced. False if it has begun to publish.
        `passed_back` is the time if the job does not wait here then, but ends for its own origin (`PASSED_BACK`)."""
        ...

    async def heard(self, job: str, epoch: int, now: float, *, running_since: float | None) -> None:
        """The member told of it; `running_since`, in its words, if it runs there."""
        ...

    async def finished(self, job: str, epoch: int, now: float) -> bool:
        """offering or away → done; its permit is void. A job that has not ended by then was called off."""
        ...

    async def may_publish(self, job: str, epoch: int) -> bool:
        """The first to ask in the current epoch may, again and again until the job is closed; nobody else ever."""
        ...

    async def get(self, job: str) -> Delegation | None: ...
    async def active(self) -> Sequence[Delegation]:
        """All that are offering or away."""
        ...


class Receipts(Protocol):
    def get(self, job: str) -> Receipt | None: ...
    def of(self, job: str, service: str) -> Receipt | None:
        """The same, if it is a job of this service: a name alone gives nobody the keys in a receipt."""
        ...

    async def accept(self, receipt: Receipt, job: Job, invocation: Invocation | None = None) -> bool:
        """The receipt and its job, together: neither is ever there alone. False if the job was there; then the newer
        permit replaces the older one, for the origin gave it to us again. A job of another service, or of somebody
        else, keeps what it has."""
        ...

    async def remove(self, *jobs: str) -> None: ...
    async def forget(self, before: float, most: int) -> int:
        """Drops those whose job ended before that time, or is gone and came before it, and those of runs that lost
        their right, about which nobody will ask; at most so many. Returns how many."""
        ...


def new_permit() -> str:
    return secrets.token_hex(32)
