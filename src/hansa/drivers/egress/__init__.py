"""How does this manager call what a tenant named? Through one `Door`, which asks the rule of `hansa.kernel.egress`.

`door` resolves once and dials what it checked, `lookups` asks for names, `ourselves` knows the machine's own addresses,
`transport` puts HTTP on top, `proxy` lets programs of others out by the same door.
"""

from hansa.drivers.egress.door import Door
from hansa.drivers.egress.lookups import Resolve, system_resolver
from hansa.drivers.egress.proxy import Proxy
from hansa.drivers.egress.transport import DoorTransport
from hansa.kernel.egress import AnswerTooLarge, BadTarget, EgressRefused, EgressUnreachable, Pair, Rule

__all__ = [
    "AnswerTooLarge",
    "BadTarget",
    "Door",
    "DoorTransport",
    "EgressRefused",
    "EgressUnreachable",
    "Pair",
    "Proxy",
    "Resolve",
    "Rule",
    "system_resolver",
]
