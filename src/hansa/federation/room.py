"""The hub's room: everything its actions work with."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from hansa.federation.ailing import Ailing
from hansa.federation.detector import Attention, Limits
from hansa.federation.directory import Directory
from hansa.federation.documents import Documents, Rollouts
from hansa.federation.hub_clock import HubClock
from hansa.federation.inventory import Inventory
from hansa.federation.lag import Lag
from hansa.federation.links import Links
from hansa.federation.ports import Clusters, Leases
from hansa.federation.recent import Recent
from hansa.federation.registry import Registry
from hansa.federation.samples import Samples
from hansa.federation.shelf import Shelf
from hansa.federation.streams import Streams
from hansa.federation.trust import Trust
from hansa.federation.waking import Waking
from hansa.federation.whole_answers import WholeAnswers
from hansa.kernel.hub import HubSettings
from hansa.messages.members import Setting


@dataclass(slots=True, kw_only=True)
class Hub:
    """One hub process."""

    id: str
    settings: HubSettings
    clock: HubClock
    registry: Registry
    clusters: Clusters
    leases: Leases
    samples: Samples
    trust: Trust
    documents: Documents
    rollouts: Rollouts
    attention: Attention
    limits: Callable[[], Limits]  # how often clusters report, and how long they may be silent
    shelf: Shelf = field(default_factory=Shelf)
    directory: Directory = field(default_factory=Directory)
    waking: Waking = field(default_factory=Waking)
    removed: set[str] = field(default_factory=set)  # ids that were members once
    trouble: str = ""  # why the database cannot be used now
    # What other parts of the room know; set where the hub is built.
    # Who hears of other news than clusters; True: everybody who waits is to be woken.
    on_news: list[Callable[[frozenset[str]], Awaitable[bool | None]]] = field(default_factory=list)
    settings_for: Callable[[str], tuple[dict[str, object], tuple[Setting, ...]]] = lambda _: ({}, ())
    roots: Callable[[], tuple[str, int]] = lambda: ("", 0)  # PEM, and the version since when
    renew: Callable[[str], bool] = lambda _: False  # must this cluster get a new certificate now?

    # What is made of the registry, and follows it.
    inventory: Inventory = field(init=False)
    ailing: Ailing = field(init=False)
    links: Links = field(init=False)
    lag: Lag = field(init=False)
    recent: Recent = field(default_factory=Recent)
    streams: Streams = field(init=False)
    holders: Mapping[str, str] = field(default_factory=dict)  # periodic work and which hub does it, a moment ago
    whole_answers: WholeAnswers = field(default_factory=WholeAnswers)
    sampled: int = 0  # the last minute whose sample is taken

    def __post_init__(self) -> None:
        self.inventory = Inventory(self.registry)
        self.ailing = Ailing(self.registry)
        self.links = Links(self.registry)
        self.lag = Lag(self.registry, self.clock.now)
        self.streams = Streams(self.registry, self.inventory, self.recent, lambda: (self.clock.now(), self.age))

    @property
    def age(self) -> float:
        """Seconds since memory was last in step with the database."""
        return max(0.0, self.clock.now() - self.registry.learned) if self.registry.learned is not None else 0.0

    async def answer_about_all(self, what: str, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """`make` gives it in JSON."""
        return await self.whole_answers.get(what, len(self.registry), self._edition, make)

    def _edition(self) -> object:
        return self.registry.edition, self.shelf.edition, self.trouble
