"""What should managers do otherwise than their own files say? Versioned documents that spread carefully.

`changing` writes versions and holds rollouts, `stepping` decides how one goes on, `driving` does it, `assigning` says
which version a cluster should have and `observing` which it has, `merging` and `viewing` show it.
"""

from hansa.federation.configuration import changing, merging, stepping, viewing
from hansa.federation.configuration.assigning import told
from hansa.federation.configuration.driving import EVERY, Driver
from hansa.federation.lifecycle import MEMBER
from hansa.federation.room import Hub
from hansa.messages.members import Setting

__all__ = ["EVERY", "Driver", "changing", "desired_for", "merging", "stepping", "viewing"]


def desired_for(hub: Hub, cluster: str) -> tuple[dict[str, object], tuple[Setting, ...]]:
    """The settings a cluster should have, and the documents they come from; nothing for one that is no member."""
    known = hub.registry.get(cluster)
    if known is None or known.record.state not in MEMBER:
        return {}, ()
    return told(hub.shelf, known)
