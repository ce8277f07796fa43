"""How is HTTP spoken with somebody who may mean harm? `WireTransport` goes below an `httpx` client and bounds what the
library leaves open. The drivers `oscar`, `hub` and `egress` share it.
"""

from hansa.drivers.wire.flood import Flood
from hansa.drivers.wire.transport import WireTransport

__all__ = ["Flood", "WireTransport"]
