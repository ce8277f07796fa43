"""How do we talk to other clusters' managers, OSCAR's own and Hansa's?

`OscarPeers` finds a trusted peer (`trust`, `addresses`), `OscarPeer` asks it. `calls` makes one bounded HTTP call,
`definitions` writes services for sending, `statuses`, `listings` and `tidings` read answers, `headers` says what may go
along, `quoting` what may be repeated, `limits` holds the numbers.
`OscarOutsiders` is how a hub asks clusters that have no manager of ours.
"""

from hansa.drivers.oscar.limits import Limits
from hansa.drivers.oscar.outsiders import OscarOutsiders
from hansa.drivers.oscar.peer import OscarPeer
from hansa.drivers.oscar.peers import OscarPeers

__all__ = ["Limits", "OscarOutsiders", "OscarPeer", "OscarPeers"]
