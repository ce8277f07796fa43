"""What time is it for the hub? All its processes go by the database's clock.

Between two looks at it time goes on by this machine's monotonic clock: setting the machine's clock changes nothing.
"""

import time


class HubClock:
    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        return time.monotonic() + self._offset

    def learn(self, told: float, asked: float) -> None:
        """The database said `told` when our monotonic clock was at `asked`."""
        self._offset = told - asked
