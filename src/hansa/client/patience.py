"""How long may a call take, and is it worth another try? Decided here, waited for by the transports. Pure.

The time limit is for the whole call, further tries included. Only what changes nothing is tried again: whether a
change arrived is for the caller to find out, by reading.
"""

import random
from dataclasses import dataclass
from typing import Any

from hansa.client import errors
from hansa.client.operations import Request

_CONNECT = 10.0
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 5.0


@dataclass(frozen=True, slots=True)
class Patience:
    seconds: float = 20.0  # for a call
    retries: int = 2  # after the first try

    @property
    def connect(self) -> float:
        return min(_CONNECT, self.seconds)

    def pause(self, request: Request[Any], error: errors.HubError, tried: int, left: float) -> float | None:
        """Seconds to wait before the next try; None: the error stands."""
        again = isinstance(error, (errors.Unreachable, errors.Unavailable))
        if not (again and request.safe and tried <= self.retries):
            return None
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**tried) * random.uniform(0.5, 1.0)  # noqa: S311 - to spread callers
        if isinstance(error, errors.Unavailable):
            pause = max(pause, error.retry_after)
        return pause if pause < left else None
