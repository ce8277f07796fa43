"""One run of a service, from acceptance to its end, and which steps it may take.

A job is accepted once, in one committed row; after that it always ends as Succeeded or Failed with a reason.
"""

import uuid
from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """As OSCAR's clients read them."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


ENDED = frozenset({Status.SUCCEEDED, Status.FAILED})


@dataclass(frozen=True, slots=True)
class Job:
    name: str
    service: str
    owner: str  # the uid of who submitted it, and of the service's owner for an upload: whose rights and quota it has
    status: Status
    created: float
    cpu: int  # millicores it is admitted with
    memory: int  # bytes
    event: bytes  # the body it was submitted with
    attempt: int = 0  # how often it was started
    phase: str = "here"  # offering: a member is being asked; away: a member has it
    started: float | None = None
    finished: float | None = None
    exit_code: int | None = None
    reason: str = ""  # why it waits or how it ended, in words
    cpu_seconds: float = 0.0
    viewer: str = ""  # the uid of who may see it besides its owner: the uploader of its input

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    def shown_to(self, uid: str) -> bool:
        return uid in (self.owner, self.viewer)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    succeeded: bool
    exit_code: int | None
    reason: str
    cpu_seconds: float = 0.0


def new_name(service: str) -> str:
    """`<service>-<uuid>`, the service cut so that the whole stays a valid name."""
    stem = service[:16].rstrip("-") if len(service) >= 25 else service
    return f"{stem}-{uuid.uuid4()}"
