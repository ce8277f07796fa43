"""A manager's line to its hub: joins, reports, asks and leaves over mutual TLS; fulfils `federation.member.Line`.

`line` is the whole, `channel` one set of connections with one certificate, `answers` what the hub's answers mean,
`keeping` the file in which credentials outlive the process.
"""

from hansa.drivers.hub.keeping import CredentialsUnusable
from hansa.drivers.hub.limits import Limits
from hansa.drivers.hub.line import HubLine

__all__ = ["CredentialsUnusable", "HubLine", "Limits"]
