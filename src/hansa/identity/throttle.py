"""How often may somebody try a wrong password? So many times a minute from one address, whoever asks.

Addresses that failed are remembered, up to a bound. When all of them together fail too often (many addresses, one
attacker), an address may fail once only before it has to wait. The right password is always accepted from an address
that did not fail lately, so nobody can lock the admin out from everywhere. An address from which the right password
came lately, such as another manager's or an office's, is given more patience: one of those behind it who is wrong
must not shut out the others.
"""

from collections import OrderedDict
from typing import Any

from hansa.identity.errors import TooManyTries
from hansa.kernel import addresses
from hansa.kernel.clock import Clock, SystemClock

_MOST_ADDRESSES = 4096
_ADDRESSES_TOGETHER = 20  # all together may fail as often as so many addresses
_PATIENCE = 20  # times as often may fail who was right before
_REMEMBERED = 86_400.0  # seconds


class _Failures:
    """How many of at most `most` failures stand, each made good after `every` seconds. One moment tells it all."""

    __slots__ = ("_every", "_good_at", "most")

    def __init__(self, most: int, every: float) -> None:
        self.most, self._every, self._good_at = most, every, 0.0

    def standing(self, now: float) -> float:
        """Never more than `most`, also if the clock was set back."""
        return min(max(0.0, (self._good_at - now) / self._every), self.most)

    def add(self, now: float) -> None:
        self._good_at = now + min(self.standing(now) + 1, self.most) * self._every

    def seconds_until(self, fewer_than: int, now: float) -> float:
        return max(0.0, (self.standing(now) - (fewer_than - 1)) * self._every)


class Throttle:
    def __init__(self, per_minute: int = 30, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._most, self._every = per_minute, 60.0 / per_minute
        self._by_host: OrderedDict[str, _Failures] = OrderedDict()
        self._right: OrderedDict[str, float] = OrderedDict()  # when the right password last came from a host
        self._most_together = per_minute * _ADDRESSES_TOGETHER
        self._together = _Failures(self._most_together, self._every / _ADDRESSES_TOGETHER)

    def check(self, address: str) -> None:
        """Raises `TooManyTries` if no password is looked at now."""
        failures = self._by_host.get(addresses.counted_as(address)) if self._by_host else None
        if failures is None:
            return
        now = self._clock.now()
        few = failures.most > self._most or self._together.standing(now) <= self._most_together - 1
        wait = failures.seconds_until(failures.most if few else 1, now)
        if wait > 0:
            raise TooManyTries(
                "too many wrong passwords came from your address",
                hint=f"wait {max(1, round(wait))} seconds, then send the right one; other addresses are not affected",
                retry_after=wait,
            )

    def failed(self, address: str) -> None:
        now, host = self._clock.now(), addresses.counted_as(address)
        failures = self._by_host.pop(host, None) or self._begun(host, now)
        failures.add(now)
        self._by_host[host] = failures
        _forget_oldest(self._by_host)
        self._together.add(now)

    def succeeded(self, address: str) -> None:
        host = addresses.counted_as(address)
        if host not in self._right:
            self._by_host.pop(host, None)  # from now on by the other measure
        self._right[host] = self._clock.now()
        self._right.move_to_end(host)
        _forget_oldest(self._right)

    def __len__(self) -> int:
        return max(len(self._by_host), len(self._right))

    def _begun(self, host: str, now: float) -> _Failures:
        patience = _PATIENCE if abs(now - self._right.get(host, 0.0)) < _REMEMBERED else 1
        return _Failures(self._most * patience, self._every / patience)


def _forget_oldest(remembered: OrderedDict[str, Any]) -> None:
    if len(remembered) > _MOST_ADDRESSES:
        remembered.popitem(last=False)
