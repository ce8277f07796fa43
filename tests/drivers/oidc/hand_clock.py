"""Time that a test moves, and the type of the fixture that opens verifiers on it."""

import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from hansa.drivers.oidc import OidcVerifier

OpenVerifier = Callable[..., AbstractAsyncContextManager[OidcVerifier]]


class HandClock:
    """Real time, moved by hand; `ticks` is the same for what counts seconds without a date."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def now(self) -> float:
        return time.time() + self.ahead

    def ticks(self) -> float:
        return time.monotonic() + self.ahead
