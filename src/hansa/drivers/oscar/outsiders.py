"""A cluster that only has OSCAR's API, asked by a hub: how much it has, and how much is free."""

import base64

from hansa.drivers.oscar.calls import Line
from hansa.drivers.oscar.limits import Limits
from hansa.drivers.oscar.peer import Abilities, OscarPeer
from hansa.kernel import endpoints
from hansa.kernel.clock import SystemClock
from hansa.kernel.errors import Invalid
from hansa.messages.clusters import Facts
from hansa.messages.members import Totals
from hansa.services import peers

_WITHIN = 8.0


class OscarOutsiders:
    """The admin of the hub named the address, so it is trusted with the credentials given with it, and only those."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits(call_timeout=_WITHIN)
        self._line = Line(self._limits)
        self._clock = SystemClock()

    async def ask(self, facts: Facts, user: str, password: str) -> Totals:
        endpoint = endpoints.normal(facts.endpoint)
        if not endpoint:
            raise Invalid("the cluster's endpoint is not a plain http(s) address")
        address = peers.Address(facts.name, endpoint, facts.verify)
        peer = OscarPeer(address, self._line, self._limits, Abilities(), self._clock)
        basic = base64.b64encode(f"{user}:{password}".encode()).decode()
        status = await peer.status(peers.Credentials(f"Basic {basic}"), _WITHIN)
        return Totals(
            nodes=status.nodes_count,
            nodes_ready=status.nodes_ready,
            cpu=status.capacity_cpu,
            cpu_used=max(0, status.capacity_cpu - status.free_cpu),
            memory=status.capacity_memory,
            memory_used=max(0, status.capacity_memory - status.free_memory),
        )

    async def close(self) -> None:
        await self._line.close()
