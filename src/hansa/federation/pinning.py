"""Where do others reach a cluster? As at its join, or as an admin said since; what it asks for later is a wish. Pure.

Who has a member's key can say anything in its name. Its address decides where others send their users' credentials, so
its own word is enough only once: when somebody let it in.
"""

from dataclasses import replace

import msgspec

from hansa.federation.ports import ClusterRecord
from hansa.kernel import endpoints
from hansa.messages.clusters import Facts

_LONGEST = 200  # characters of a wish that are shown


def facts_of(record: ClusterRecord) -> Facts:
    """What is true of a cluster: its own words, over them what an admin said, and the address others are told."""
    told = record.told
    if not record.overrides and (told.endpoint, told.verify) == (record.endpoint, record.verify):
        return told
    return msgspec.structs.replace(told, **{**record.overrides, "endpoint": record.endpoint, "verify": record.verify})


def wish_of(record: ClusterRecord) -> str:
    """The address it asks for and nobody has decided about; "" if there is none."""
    asked = shown(record.told.endpoint)
    if record.kind == "oscar" or asked in ("", shown(record.endpoint), record.refused):
        return ""
    return asked


def reason(record: ClusterRecord) -> str:
    wish = wish_of(record)
    if not wish:
        return ""
    instead = f" instead of {record.endpoint}" if record.endpoint else ""
    return f"it asks to be reached at {wish}{instead}: hansa cluster address approve {record.id}, or refuse"


def pinned(record: ClusterRecord, endpoint: str, *, verify: bool) -> ClusterRecord:
    """At this address from now on. What it says of itself now is no wish then: whoever decides has seen it."""
    asked = shown(record.told.endpoint)
    return replace(record, endpoint=endpoint, verify=verify, refused=asked if asked != endpoint else "")


def shown(said: str) -> str:
    """An address as it is compared and shown; of one that is not plain, what can be printed."""
    return endpoints.normal(said) or "".join(c if c.isprintable() else "?" for c in said[:_LONGEST])
