"""A manager's own place in a federation: what `/v1/membership` of a manager takes and shows."""

from typing import Annotated, Any, Literal, get_args

from msgspec import field

from hansa.messages import Message, Request, known
from hansa.messages.members import LinkSeen, Neighbour, Setting

Standing = Literal["none", "joining", "pending", "member", "leaving", "removed", "left"]
AnyStanding = Annotated[str, known(get_args(Standing))]


class JoinHub(Request, frozen=True, kw_only=True):
    hub: str  # https://host:port, where managers reach it
    token: str


class Membership(Message, frozen=True, kw_only=True):
    cluster: str
    state: AnyStanding
    since: float
    reason: str  # why it is in this state, in words
    hint: str = ""  # what to do about it
    hub: str = ""
    seen_as: str | None = None  # how the hub sees this cluster: a `State`, or one of a newer hub
    answered: float | None = None  # when the hub last answered
    trouble: str = ""  # why it does not answer now
    every: float = 0.0  # seconds between two reports
    certificate_until: float | None = None
    cordoned: bool = False  # takes no jobs of other clusters
    draining: bool = False
    drained: bool = False
    running: int = 0  # what a drain waits for
    waiting: int = 0
    generation: int = 0  # of what the hub told
    settings: dict[str, Any] = field(default_factory=dict)  # of the hub, in force here
    documents: tuple[Setting, ...] = ()  # where they come from
    error: str = ""  # why the newest were not taken
    neighbours: tuple[Neighbour, ...] = ()
    links: tuple[LinkSeen, ...] = ()
    reports_waiting: int = 0  # kept for the hub
    reports_dropped: int = 0  # there were too many to keep
