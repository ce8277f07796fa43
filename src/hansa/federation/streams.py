"""What changes now, for everybody who looks? Live views of the inventory, as server-sent events.

Of every cluster only its newest event is kept, in the order in which they came; who follows remembers how far it is.
So a slow reader costs nothing: what it missed is one event for each cluster that changed meanwhile, and it can come
back with the id of the last event it got. Events are made together, a few times a second, and once for all readers.

    snapshot   the whole inventory (`Inventory`): at the start, and whenever too much was missed
    cluster    one cluster's part of it (`ClusterInventory`)
    removed    a cluster that is gone, or that the selector does not mean any more: {"id": …}
    change     what happened, in words (`Change`)
"""

import asyncio
import secrets
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Literal

import msgspec

from hansa.federation.errors import TooManyViews
from hansa.federation.inventory import EVERYTHING, Inventory
from hansa.federation.ports import ClusterRecord
from hansa.federation.recent import Recent
from hansa.federation.registry import Registry
from hansa.federation.selectors import Selector
from hansa.kernel.errors import Temporary
from hansa.messages.inventory import Change
from hansa.messages.members import Totals

EVERY = 0.25  # seconds between two events of one cluster
HEARTBEAT = 15.0
_MOST_GONE, _MOST_CHANGES, _MOST_READERS = 10_000, 1000, 2000
MOST_OF_ONE = 100  # readers who are one person, or one program's account
_ALIVE = b": still here\n\n"  # a comment: proxies and readers see that the connection lives


@dataclass(frozen=True, slots=True)
class _Event:
    number: int
    kind: Literal["cluster", "removed", "change"]
    cluster: str
    text: bytes


class Streams:
    def __init__(
        self, registry: Registry, inventory: Inventory, recent: Recent, now: Callable[[], tuple[float, float]]
    ) -> None:
        """`now` gives the time and how old memory is."""
        self._registry = registry
        self._inventory = inventory
        self._now = now
        self._life = secrets.token_hex(4)  # ids of another process, or of this one's former life, mean nothing here
        self._number = 0
        self._forgotten = 0  # who has not seen this one cannot be told what was missed
        self._latest: dict[str, _Event] = {}
        self._told: dict[str, tuple[ClusterRecord, Totals]] = {}
        self._changes: deque[_Event] = deque()
        self._gone: deque[tuple[str, int]] = deque()
        self._touched: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._bell = asyncio.Event()
        self._readers = 0
        self._by_person: Counter[str] = Counter()
        self._closed = False
        self._together: tuple[int, int, bytes] = (0, 0, b"")
        registry.watch(self._touch)
        recent.watch(self._add_change)

    @property
    def readers(self) -> int:
        return self._readers

    def close(self) -> None:
        """Every stream ends, properly, and none begins: the process stops."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._ring()

    def tell(self) -> None:
        """Tells all readers what changed so far; happens by itself when it is time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._make_events()
        self._ring()

    def follow(self, selector: Selector = EVERYTHING, last_id: str = "", *, person: str = "") -> AsyncIterator[bytes]:
        """Pieces of the stream, each some whole events; ends when the process stops."""
        if self._by_person[person] >= MOST_OF_ONE:
            raise TooManyViews(f"you have {MOST_OF_ONE} live views open", hint="close some of them", retry_after=10)
        if self._closed or self._readers >= _MOST_READERS:
            why = "the hub is stopping" if self._closed else "there are too many live views"
            raise Temporary(why, hint="try again, or ask for /v1/inventory now and then")
        return self._follow(selector, last_id, person)

    async def _follow(self, selector: Selector, last_id: str, person: str) -> AsyncIterator[bytes]:
        clock = asyncio.get_running_loop().time
        self._readers += 1
        self._by_person[person] += 1
        try:
            await self._inventory.prepare()
            self._make_events()
            reader = _Reader(selector, self._number_of(last_id))
            spoke = clock()
            while not self._closed:
                bell = self._bell
                piece = self._piece(reader) or await _rung(bell, spoke + HEARTBEAT - clock())
                if piece:
                    yield piece
                    spoke = clock()
        finally:
            self._readers -= 1
            self._by_person -= Counter((person,))  # whoever has none takes no memory

    def _piece(self, reader: "_Reader") -> bytes:
        if reader.number is None or reader.number < self._forgotten:
            reader.shown = self._meant(reader.selector)
            reader.number = self._number
            at, age = self._now()
            return self._text("snapshot", self._number, self._inventory.answer(at, age, reader.selector))
        if reader.number == self._number:
            return b""
        after, reader.number = reader.number, self._number
        if not reader.selector:
            return self._for_all(after)
        piece = b"".join(self._for_one(reader, event) for event in self._after(after))
        if reader.shown is None:
            reader.shown = self._meant(reader.selector)
        return piece

    def _for_all(self, after: int) -> bytes:
        """Readers of everything mostly are equally far."""
        if self._together[:2] != (after, self._number):
            self._together = (after, self._number, b"".join(event.text for event in self._after(after)))
        return self._together[2]

    def _for_one(self, reader: "_Reader", event: _Event) -> bytes:
        known = self._registry.get(event.cluster)
        meant = known is not None and reader.selector.matches(known)
        if event.kind == "change":
            return event.text if meant or not event.cluster else b""
        # who came back may have been shown it before
        was_shown = reader.shown is None or event.cluster in reader.shown
        if meant and event.kind == "cluster":
            if reader.shown is not None:
                reader.shown.add(event.cluster)
            return event.text
        if reader.shown is not None:
            reader.shown.discard(event.cluster)
        return self._removal(event.cluster, event.number) if was_shown else b""

    def _meant(self, selector: Selector) -> set[str]:
        return {known.id for known in self._registry if selector.matches(known)} if selector else set()

    def _after(self, number: int) -> list[_Event]:
        found: list[_Event] = []
        for events in (reversed(self._latest.values()), reversed(self._changes)):
            for event in events:
                if event.number <= number:
                    break
                found.append(event)
        found.sort(key=lambda event: event.number)
        return found

    def _touch(self, cluster: str) -> None:
        self._touched.add(cluster)
        self._soon()

    def _add_change(self, change: Change) -> None:
        self._number += 1
        text = self._text("change", self._number, msgspec.json.encode(change))
        self._changes.append(_Event(self._number, "change", change.cluster, text))
        if len(self._changes) > _MOST_CHANGES:
            self._forgotten = max(self._forgotten, self._changes.popleft().number)
        self._soon()

    def _soon(self) -> None:
        if self._timer is None and self._readers and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(EVERY, self.tell)

    def _ring(self) -> None:
        rung, self._bell = self._bell, asyncio.Event()
        rung.set()

    def _make_events(self) -> None:
        touched, self._touched = self._touched, set()
        for cluster in touched:
            known, part = self._registry.get(cluster), self._inventory.part(cluster)
            if known is None or part is None:
                self._told.pop(cluster, None)
                if (former := self._latest.get(cluster)) is None or former.kind != "removed":
                    self._put(cluster, "removed")
                continue
            told = self._told.get(cluster)
            # Another report than the totals changes nothing of what is shown here.
            if told is not None and told[0] is known.record and told[1] is known.totals:
                continue
            self._told[cluster] = (known.record, known.totals)
            self._put(cluster, "cluster", part)

    def _put(self, cluster: str, kind: Literal["cluster", "removed"], part: bytes = b"") -> None:
        self._number += 1
        number = self._number
        text = self._text(kind, number, part) if part else self._removal(cluster, number)
        self._latest.pop(cluster, None)  # so that the newest stand last
        self._latest[cluster] = _Event(number, kind, cluster, text)
        if kind == "removed":
            self._gone.append((cluster, number))
            if len(self._gone) > _MOST_GONE:
                self._forget(*self._gone.popleft())

    def _forget(self, cluster: str, number: int) -> None:
        event = self._latest.get(cluster)
        if event is not None and event.number == number:  # otherwise it is back
            del self._latest[cluster]
            self._forgotten = max(self._forgotten, number)

    def _removal(self, cluster: str, number: int) -> bytes:
        return self._text("removed", number, msgspec.json.encode({"id": cluster}))

    def _text(self, kind: str, number: int, data: bytes) -> bytes:
        return b"id: %b-%d\nevent: %b\ndata: %b\n\n" % (self._life.encode(), number, kind.encode(), data)

    def _number_of(self, last_id: str) -> int | None:
        """How far a reader is that comes back; None begins anew."""
        life, _, number = last_id.partition("-")
        if life != self._life or not (number.isascii() and number.isdigit() and len(number) < 19):
            return None
        return int(number) if int(number) <= self._number else None


@dataclass(slots=True)
class _Reader:
    selector: Selector
    number: int | None  # of the last event it got
    shown: set[str] | None = None  # clusters it knows of; None is unknown


async def _rung(bell: asyncio.Event, seconds: float) -> bytes:
    """Nothing once there is something new; a sign of life if nothing was said for long."""
    try:
        async with asyncio.timeout(seconds):
            await bell.wait()
    except TimeoutError:
        return _ALIVE
    return b""
