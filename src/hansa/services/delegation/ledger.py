"""What is remembered of jobs given away and of jobs taken in; `store/delegations.py` keeps it.

A delegation has an epoch. Whenever a job is taken back from somebody the epoch rises, and with it the permit changes:
a run of an older epoch can never publish its outputs again.
"""

import hashlib
import json
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
# In a delegation's decision.
SERVICE, OVERDUE = "service", "overdue"
DROPPED = "dropped"  # by member: how often the job was given to it, and was not to be found there later
ONWARD, OF, SUBMITTER, EVENT = "onward", "of", "submitter", "event"
MAIN = "main"  # of keys for whoever a job is handed on to: what the member has from us of that job, as [name, epoch]
ADOPTED_NAMES = "adopted/"
READS = "reads"  # of what is adopted: by whose right, and which object, as [uid, provider, bucket, key]
WAS = "was"  # under which name an older version kept what is adopted


@dataclass(frozen=True, slots=True)
class Delegation:
    """A job of ours at a member, or on its way there; or one of a member's, for which it was lent keys."""

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
    named: str = ""  # its name at the member, if that is another one

    @property
    def fenced(self) -> bool:
        """Whether the member asks before it publishes, so that the job may safely be taken from it."""
        return bool(self.decision.get("fenced", True))

    @property
    def adopted(self) -> bool:
        """Whether it was submitted to the member: it is none of ours, and is never taken from there. `job` is no name
        that a job can have then (`adopted_name`)."""
        return is_adopted_name(self.job)

    @property
    def of_service(self) -> str:
        """Our own, whose federation the member belongs to; "" if an older version gave the job away."""
        return str(self.decision.get(SERVICE, ""))

    @property
    def onward(self) -> bool:
        """The coordinator lent this member its own store keys for a job that we passed on."""
        return bool(self.decision.get(ONWARD, False))

    @property
    def known_as(self) -> str:
        """By which name its member is asked about it: keys for one that hands a job on have names of their own."""
        return str(self.decision.get(OF, "")) or self.named or self.job

    @property
    def kept_as(self) -> str:
        """For which name its permit is sealed and its keys are lent."""
        return str(self.decision.get(WAS, "")) or self.job

    @property
    def main(self) -> tuple[str, int] | None:
        """(name, epoch) of the delegation this loan depends on; when it is gone, end the loan."""
        name, epoch = self.decision.get(MAIN) or ("", 0)
        return (str(name), int(epoch)) if name else None

    @property
    def dropped(self) -> Mapping[str, int]:
        return dict(self.decision.get(DROPPED, {}))

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
        """Whether it came with keys that only its origin can end."""
        return not self.ours and bool(self.permit and self.store.get("access_key"))

    @property
    def personal(self) -> bool:
        """Whether its keys are those of whoever submitted it here: they open all that person's data, for good."""
        return self.ours and not self.permit and bool(self.store.get("access_key"))


@dataclass(slots=True)
class Borrowing:
    """Requests under way for one job that was submitted here, or for a synchronous run, whose data may be elsewhere."""

    requests: int = 0
    permit: str = field(default="", repr=False)  # "" until its origin is asked for keys


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
        """A job that a member was given by others. False if it is known."""
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
        """offering or away → done; its permit is void. A job that has not ended by then was called off. Nothing stays
        of one that was adopted."""
        ...

    async def may_publish(self, job: str, epoch: int) -> bool:
        """The first to ask in the current epoch may, again and again until the job is closed; nobody else ever."""
        ...

    async def get(self, job: str) -> Delegation | None: ...
    async def named(self, name: str) -> Sequence[Delegation]:
        """All that are offering or away and have this name at their members, which is not the one they have here."""
        ...

    async def active(self) -> Sequence[Delegation]:
        """All that are offering or away."""
        ...

    async def adopted_at(self, cluster_id: str, service: str) -> int:
        """How many that were adopted are away at this member."""
        ...


class Receipts(Protocol):
    def get(self, job: str) -> Receipt | None: ...
    def of(self, job: str, service: str) -> Receipt | None:
        """The same, if it is a job of this service: a name alone gives nobody the keys in a receipt."""
        ...

    def from_origin(self, origin: str) -> Sequence[str]:
        """The jobs that this cluster handed us, and that we keep a receipt for."""
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


def adopted_name(service: str, cluster_id: str, at_member: str, job: str) -> str:
    """Which jobs of its own a member tells us of is its own affair: whatever it calls them, here they have names that
    no other job can have, so that they never answer for one, end one, or stand in its way."""
    whose = json.dumps((service, cluster_id, at_member, job))
    return f"{ADOPTED_NAMES}{hashlib.sha256(whose.encode()).hexdigest()[:48]}"


def is_adopted_name(job: str) -> bool:
    return job.startswith(ADOPTED_NAMES)
