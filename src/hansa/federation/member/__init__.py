"""A manager's side of the federation: does it belong, and what does it tell its hub and learn from it?

`agent` joins, leaves and says how things stand; `session` keeps the conversation going; `watching` does what the hub
wants; `neighbours` are the other clusters, and `links` measures the way to them. `beats`, `pacing` and `renewal`
decide, and wait for nobody.
"""

from hansa.federation.member import errors
from hansa.federation.member.agent import Membership
from hansa.federation.member.ports import Cluster, Held, Line, Memory, Probe, Progress, Remembered, Reports

__all__ = [
    "Cluster",
    "Held",
    "Line",
    "Membership",
    "Memory",
    "Probe",
    "Progress",
    "Remembered",
    "Reports",
    "errors",
]
