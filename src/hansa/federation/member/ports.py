"""What a manager needs to belong to a federation: a line to its hub, a memory, and a hold on the cluster itself.

`drivers/hub` is the line, `store/membership.py` the memory, `bootstrap/membership.py` the hold on the running manager.
Every call over the line is bounded in time by its driver and raises `Temporary` if the hub does not answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hansa.messages import Message
from hansa.messages.clusters import Facts
from hansa.messages.members import Desired, Heard, Heartbeat, Joined, Neighbour, Report, Setting
from hansa.messages.membership import Standing


@dataclass(frozen=True, slots=True)
class Held:
    """The credentials this manager keeps: where they are good, and from when until when."""

    hub: str
    cluster: str
    incarnation: int
    issued: float
    until: float


class Line(Protocol):
    """The manager's way to its hub. May raise `WasRemoved` and `NotAMember` on every call but `join`."""

    def held(self) -> Held | None:
        """None: there are no credentials."""
        ...

    async def join(self, hub: str, token: str, cluster: str, facts: Facts) -> Joined:
        """Makes a key, has it signed, and keeps what came of it."""
        ...

    async def renew(self) -> Joined:
        """A new key and certificate, kept before it is used."""
        ...

    async def heartbeat(self, beat: Heartbeat) -> Heard: ...
    async def desired(self, after: int, wait: float) -> Desired | None:
        """None if nothing newer came within `wait` seconds."""
        ...

    async def leave(self, run: str) -> None:
        """`run` is what this conversation's heartbeats were marked with."""
        ...

    async def move(self, hub: str) -> None:
        """The same hub is found at another address from now on."""
        ...

    async def trust(self, roots: str) -> None:
        """From now on the hub may show certificates of these roots, and only of these."""
        ...

    async def forget(self) -> None:
        """The credentials are deleted; there may be none."""
        ...


@dataclass(frozen=True, slots=True)
class Remembered:
    """What outlives a restart, besides credentials and reports."""

    standing: Standing = "none"
    since: float = 0.0
    reason: str = ""
    hub: str = ""
    incarnation: int = 0
    token_mark: str = ""  # of the token last used, so that the same one is not tried again
    leaving: bool = False  # its own admin wants it to leave
    numbers: int = 0  # heartbeats up to this number may have been sent
    desired: Desired | None = None  # all neighbours are in it
    settings: Mapping[str, Any] = field(default_factory=dict)  # in force: those of `desired`, or of an earlier one
    documents: tuple[Setting, ...] = ()


class Memory(Protocol):
    """Durable when it returns."""

    async def load(self) -> Remembered: ...
    async def save(self, remembered: Remembered) -> None: ...


class Reports(Protocol):
    """What happened, kept until the hub has it. Numbers only ever grow."""

    async def add(self, at: float, kind: str, detail: str) -> None:
        """The oldest are dropped, and counted, when there are too many."""
        ...

    async def oldest(self, most: int) -> Sequence[Report]: ...
    async def forget(self, upto: int) -> None: ...
    async def clear(self) -> None: ...
    async def counts(self) -> tuple[int, int]:
        """How many wait, and how many were dropped since the hub last had all."""
        ...


@dataclass(frozen=True, slots=True)
class Progress:
    """What a drain still waits for."""

    running: int
    waiting: int

    @property
    def over(self) -> bool:
        return not self.running and not self.waiting


class Cluster(Protocol):
    """The running manager, as far as its hub may know of it and change it."""

    def facts(self) -> Facts: ...
    async def sections(self) -> Mapping[str, Message | Sequence[Message]]:
        """`totals`, `nodes`, `facts` and others this manager tells of itself."""
        ...

    async def missing(self) -> Sequence[str]:
        """Parts that do not answer, in words."""
        ...

    async def apply(self, settings: Mapping[str, Any]) -> None:
        """These and nothing else on top of the manager's own settings: all of them, or an error that says which was
        refused and why, and then everything is as before."""
        ...

    async def know(self, neighbours: Sequence[Neighbour]) -> None:
        """The clusters that may be sent credentials, besides those of the manager's own settings."""
        ...

    def set_duty(self, *, cordoned: bool, draining: bool) -> None: ...
    async def progress(self) -> Progress: ...
    def talks_to(self) -> frozenset[str]:
        """Clusters that services here name."""
        ...


class Probe(Protocol):
    async def __call__(self, neighbour: Neighbour, timeout: float, /) -> float:
        """Seconds until another cluster's manager answered. Raises a `HansaError` that says why it did not."""
        ...
