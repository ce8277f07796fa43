"""What goes into the next heartbeat? What the hub has not confirmed yet, and nothing else. Pure.

The hub may have any part of it, or none: only an answer counts. After a restart, and whenever the hub says that it
misses something, every section goes.
"""

from collections.abc import Mapping, Sequence

from msgspec import Raw

from hansa.messages.members import Heard, Heartbeat, Report

_RESERVED = 1_000_000  # numbers taken at once, so that writing them down is rare


class Numbers:
    """Numbers of heartbeats: they only grow, also over restarts and when the machine's clock is set back."""

    def __init__(self, now: float, reserved: int) -> None:
        self._next = max(int(now * 1000), reserved + 1)
        self.reserved = reserved

    def take(self) -> int:
        """Write `reserved` down before the number is used, if it changed."""
        number, self._next = self._next, self._next + 1
        if number > self.reserved:
            self.reserved = number + _RESERVED
        return number


class Beats:
    def __init__(self) -> None:
        self._confirmed: dict[str, bytes] = {}
        self._whole = True
        self._answered = 0

    def start_over(self) -> None:
        """The hub knows nothing of us: a new life, or a new start."""
        self._confirmed, self._whole, self._answered = {}, True, 0

    def make(
        self,
        number: int,
        incarnation: int,
        sections: Mapping[str, bytes],
        reports: Sequence[Report] = (),
        *,
        run: str = "",
    ) -> Heartbeat:
        news = {name: Raw(body) for name, body in sections.items() if self._whole or self._confirmed.get(name) != body}
        for name in news:
            self._confirmed.pop(name, None)  # until it is answered we cannot know which of the two the hub has
        return Heartbeat(
            incarnation=incarnation,
            number=number,
            answered=self._answered,
            run=run,
            sections=news,
            reports=tuple(reports),
            whole=self._whole,
        )

    def answered(self, beat: Heartbeat, heard: Heard) -> None:
        self._confirmed.update({name: bytes(body) for name, body in beat.sections.items()})
        self._whole = heard.whole
        self._answered = beat.number
