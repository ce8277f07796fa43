"""What the hub needs of the world: somewhere to remember, and to share the work with other hub processes.

`store/hub` implements these on SQLite (one process) and PostgreSQL (several). Every change of the registry happens in
one transaction that also moves the hub's version on, so versions are seen in the order of their commits: whoever knows
version 7 misses nothing when it asks for what came after 7. All may raise `Temporary` when the database is away.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from hansa.identity import authority
from hansa.messages.clusters import Facts, Kind, State, Wanted
from hansa.messages.inventory import Change

NOW = -1  # as `desired` of a record that is written: the version it gets, so that its cluster is told at once


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """One cluster, as it is remembered. Replaced as a whole; `version` tells of which state a change was decided."""

    id: str
    kind: Kind
    state: State
    since: float
    reason: str
    incarnation: int
    joined: float
    told: Facts  # what it says of itself; of its address others are told what stands below
    overrides: Mapping[str, Any] = field(default_factory=dict)  # what an admin says of it, which wins
    cordoned: bool = False
    wanted: Wanted = "member"
    serials: tuple[str, ...] = ()  # certificates it may show, newest last
    certificate_until: float | None = None
    endpoint: str = ""  # where others reach it: as at its join, or as an admin said since
    verify: bool = True  # whether they check the certificate there; only an admin says no
    refused: str = ""  # the last other endpoint that it asked for and an admin did not want
    desired: int = 0  # when something that only this cluster should know last changed: a version, or `NOW`
    version: int = 0


@dataclass(frozen=True, slots=True)
class Note:
    """A change to be told: what happened to which cluster, in words."""

    cluster: str
    kind: str
    detail: str
    at: float | None = None  # when the cluster says it happened; None is now


@dataclass(frozen=True, slots=True)
class Sighting:
    """That a cluster was heard, and what it said. `number` is its own; sections are numbered by the hub, in the order
    in which they were heard: a number that a sender chooses must not decide which of two is newer."""

    cluster: str
    incarnation: int
    seen: float
    number: int
    sections: Mapping[str, tuple[int, bytes]] = field(default_factory=dict)
    received: int = 0  # reports of it up to this number were written down
    reports: tuple[tuple[int, Note], ...] = ()  # further ones, by their numbers
    run: str = ""  # of its sender: another after every start


@dataclass(frozen=True, slots=True)
class News:
    """What changed in the database after a version."""

    version: int
    now: float  # the database's clock, by which all hubs go
    clusters: Sequence[ClusterRecord] = ()
    removed: Mapping[str, int] = field(default_factory=dict)  # with the version each went with
    sightings: Sequence[Sighting] = ()
    changes: Sequence[Change] = ()
    restored: int = 0  # the version at which a backup was restored: of the time before, we may know less than others
    others: frozenset[str] = frozenset()  # other tables that changed: "authorities", "documents", "rollouts"


@dataclass(frozen=True, slots=True)
class Fence:
    """The right to do a periodic work, which ends when another hub takes it over."""

    work: str
    holder: str
    epoch: int


class Clusters(Protocol):
    """The registry's rows."""

    async def news(self, after: int) -> News: ...

    async def put(
        self, record: ClusterRecord, *notes: Note, fence: Fence | None = None, credentials: bytes = b""
    ) -> ClusterRecord | None:
        """Writes the record if it still is at `record.version` (0: if there is none); None if it is not. With a fence
        that was lost it raises `LeaseLost`. Sealed `credentials` replace those the hub asked this cluster with."""
        ...

    async def put_all(
        self, records: Sequence[ClusterRecord], notes: Sequence[Note] = (), *, fence: Fence | None = None
    ) -> Sequence[ClusterRecord]:
        """As `put`, for many in one transaction; those that changed meanwhile are left out of the answer."""
        ...

    async def remove(self, cluster: str, note: Note) -> bool:
        """Nothing of it stays but its number of lives, so that a former one is not taken for it."""
        ...

    async def lives(self, cluster: str) -> int:
        """The highest incarnation there ever was under this id."""
        ...

    async def sighted(self, sightings: Sequence[Sighting]) -> None:
        """Newer numbers win, section by section; a report that was written down, whatever its number, is not written
        again; of clusters that are gone nothing is kept."""
        ...

    async def note(self, *notes: Note, fence: Fence | None = None) -> None: ...

    async def changes(self, *, before: int | None = None, cluster: str = "", most: int = 100) -> Sequence[Change]:
        """Newest first."""
        ...

    async def tidy(self, keep_changes: int, fence: Fence) -> None:
        """Forgets changes beyond that number (`kept_changes`), and turns of periodic work that are long over."""
        ...


class Leases(Protocol):
    """Who does which periodic work. Times are the database's."""

    async def hold(self, work: str, seconds: float) -> Fence | None:
        """Takes, keeps or takes over the work if nobody else holds it; None if somebody does."""
        ...

    async def release(self, fence: Fence) -> None: ...

    async def holders(self) -> Mapping[str, str]:
        """The works whose lease is alive, and who holds each."""
        ...

    async def once(self, fence: Fence, slot: int) -> bool:
        """Claims one turn of a work: True for exactly one caller of each slot, whichever hub it is in."""
        ...


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """A token to join, as it is remembered: not the token, only what tells it from others."""

    id: str
    digest: str = field(repr=False)
    cluster: str  # the only one that may use it; "" is any
    approve: bool
    author: str
    created: float
    expires: float
    used_by: str = ""
    used: float | None = None
    used_key: str = ""  # of the key that was signed: it may ask again, for its answer may have got lost
    life: int = 0  # the incarnation of the cluster that began with it
    endpoint: str = ""  # where the cluster will be, whatever it says itself; "" is where it says


class Tokens(Protocol):
    """Tokens to join. Times are the database's."""

    async def add(self, token: TokenRecord, note: Note) -> None: ...
    async def get(self, ident: str) -> TokenRecord | None: ...
    async def all(self) -> Sequence[TokenRecord]: ...
    async def use(self, ident: str, *, cluster: str, key: str, life: int) -> bool:
        """Of all who ever ask exactly one is told True, if the token is still good then."""
        ...

    async def revoke(self, ident: str, note: Note) -> bool: ...
    async def forget(self, expired_before: float, fence: Fence) -> int: ...


AuthorityState = Literal["next", "active", "retiring", "gone"]


@dataclass(frozen=True, slots=True)
class Authority:
    """One root of trust, and what it is used for now. One that is gone has lost its key."""

    root: authority.Root
    state: AuthorityState
    since: float
    version: int = 0


class Authorities(Protocol):
    """The roots of trust; their keys are kept sealed."""

    async def all(self) -> Sequence[Authority]:
        """Oldest first, those that are gone included."""
        ...

    async def put(self, changed: Sequence[Authority], note: Note, *, expected: int, fence: Fence | None = None) -> bool:
        """Writes these if no authority has changed since the version `expected` (0: there never was one)."""
        ...
