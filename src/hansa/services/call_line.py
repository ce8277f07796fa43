"""Who is next, of those who wait to call a service? One call of each caller in turn, and nobody has any number waiting.

`max_scale` bounds how many calls of a service run at once. Engines keep one `CallLine` for each service; `Rotation` is
its rule, and pure.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from hansa.resources import Admission, Needs
from hansa.services.errors import NoWorker
from hansa.services.ports import RunOrder

MOST_WAITING = 128  # calls of one caller, at one service

T = TypeVar("T")


class Rotation(Generic[T]):
    """Callers take turns; the calls of one are in order of arrival."""

    def __init__(self) -> None:
        self._callers: dict[str, deque[T]] = {}  # in the order of their turns

    def waiting(self, caller: str) -> int:
        return len(self._callers.get(caller, ()))

    def join(self, caller: str, call: T) -> None:
        self._callers.setdefault(caller, deque()).append(call)

    def leave(self, caller: str, call: T) -> None:
        calls = self._callers[caller]
        calls.remove(call)
        if not calls:
            del self._callers[caller]

    def next(self, may_go: Callable[[T], bool]) -> T | None:
        """The next call, if any of those that are first for their callers may go."""
        for caller, calls in self._callers.items():
            if may_go(calls[0]):
                call = calls.popleft()
                del self._callers[caller]
                if calls:
                    self._callers[caller] = calls  # behind all others
                return call
        return None

    def __bool__(self) -> bool:
        return bool(self._callers)


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    caller: str
    turn: asyncio.Future[None]
    may_go: Callable[[], bool]


class CallLine:
    """The calls of one service."""

    def __init__(self) -> None:
        self.busy = 0
        self._most = 0
        self._waiting: Rotation[_Call] = Rotation()
        self._unsettled: set[str] = set()  # callers of whom one was called up that does not hold its share yet

    @property
    def empty(self) -> bool:
        return not (self.busy or self._waiting)

    @asynccontextmanager
    async def place(self, order: RunOrder, admission: Admission, end: float) -> AsyncIterator[Callable[[], None]]:
        """A place for this call, until `end` by the loop's clock. A caller whose share is used up holds none while
        waiting for it. The owner's share does not count here: idle workers of the service itself hold a part of it.
        What it yields has to be called once the call holds its share: only then is it known whether the caller may
        have another one."""
        needs = needs_of(order, order.payer)
        is_owner = order.payer == order.service.owner
        try:
            await self.enter(
                order.payer,
                order.service.synchronous.max_scale,
                end,
                lambda: is_owner or not admission.lacks_share(needs),
            )
        except TimeoutError:
            raise no_worker(order, "" if is_owner else admission.over_share(needs)) from None
        settled = False

        def settle() -> None:
            nonlocal settled
            if not settled:
                settled = True
                self.settle(order.payer)

        try:
            yield settle
        finally:
            settle()
            self.leave()

    async def enter(self, caller: str, most: int, end: float, may_go: Callable[[], bool]) -> None:
        """One of the `most` calls that run at once (0 is any number). A call that may not go lets others pass. Raises
        `TimeoutError` at `end`, by the loop's clock. Whoever entered has to `settle`, and to `leave`."""
        self._most = most
        if not most:
            self.busy += 1
            return
        if self._waiting.waiting(caller) >= MOST_WAITING:
            raise NoWorker(
                f"{MOST_WAITING} calls of yours wait for this service already",
                hint="wait until some of them are answered",
            )
        call = _Call(caller, asyncio.get_running_loop().create_future(), may_go)
        self._waiting.join(caller, call)
        self.look_again()
        try:
            async with asyncio.timeout_at(end):
                await call.turn
        except BaseException:
            if call.turn.done() and not call.turn.cancelled():
                self.settle(caller)
                self.leave()  # called up in the same moment: the next one may go
            else:
                self._waiting.leave(caller, call)
                self.look_again()
            raise

    def settle(self, caller: str) -> None:
        """The one of this caller that entered last holds its share now, or never will."""
        self._unsettled.discard(caller)
        self.look_again()

    def leave(self) -> None:
        self.busy -= 1
        self.look_again()

    def look_again(self) -> None:
        """Somebody may go who could not before."""
        while not self._most or self.busy < self._most:
            call = self._waiting.next(self._may_go)
            if call is None:
                return
            self.busy += 1
            self._unsettled.add(call.caller)
            call.turn.set_result(None)

    def _may_go(self, call: _Call) -> bool:
        return not call.turn.done() and call.caller not in self._unsettled and call.may_go()


def needs_of(order: RunOrder, payer: str) -> Needs:
    return Needs(order.cpu, order.memory, order.disk, payer)


def no_worker(order: RunOrder, why: str = "") -> NoWorker:
    """`why` if it is not that all are busy."""
    return NoWorker(
        f"no worker for {order.service.name} within {order.seconds:g} s: "
        f"{why or 'all workers the service may have are busy'}",
        hint="try again when other calls and jobs have ended"
        + ("" if why else ", or have synchronous.max_scale of the service raised"),
    )
