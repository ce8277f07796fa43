"""Who is next, of those who wait to call a service? One call of each caller in turn, and nobody has any number waiting.

`max_scale` bounds how many calls of a service run at once. Engines keep one `CallLine` for each service; `Rotation` is
its rule, and pure.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from hansa.services.errors import NoWorker

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
    turn: asyncio.Future[None]
    may_go: Callable[[], bool]


class CallLine:
    """The calls of one service."""

    def __init__(self) -> None:
        self.busy = 0
        self._most = 0
        self._waiting: Rotation[_Call] = Rotation()

    @property
    def empty(self) -> bool:
        return not (self.busy or self._waiting)

    async def enter(self, caller: str, most: int, end: float, may_go: Callable[[], bool]) -> None:
        """One of the `most` calls that run at once (0 is any number). A call that may not go lets others pass. Raises
        `TimeoutError` at `end`, by the loop's clock. Whoever entered has to `leave`."""
        self._most = most
        if not most:
            self.busy += 1
            return
        if self._waiting.waiting(caller) >= MOST_WAITING:
            raise NoWorker(
                f"{MOST_WAITING} calls of yours wait for this service already",
                hint="wait until some of them are answered",
            )
        call = _Call(asyncio.get_running_loop().create_future(), may_go)
        self._waiting.join(caller, call)
        self.look_again()
        try:
            async with asyncio.timeout_at(end):
                await call.turn
        except BaseException:
            if call.turn.done() and not call.turn.cancelled():
                self.leave()  # called up in the same moment: the next one may go
            else:
                self._waiting.leave(caller, call)
                self.look_again()
            raise

    def leave(self) -> None:
        self.busy -= 1
        self.look_again()

    def look_again(self) -> None:
        """Somebody may go who could not before."""
        while not self._most or self.busy < self._most:
            call = self._waiting.next(lambda one: not one.turn.done() and one.may_go())
            if call is None:
                return
            self.busy += 1
            call.turn.set_result(None)
