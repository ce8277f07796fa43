"""Whom does a cluster say it reaches? Its section `links`, read, and without one of those it names."""

import msgspec

from hansa.federation import section_bodies
from hansa.messages.members import LinkSeen

SECTION = "links"
_LINKS = msgspec.json.Decoder(list[LinkSeen])
_ANY = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_TARGET = msgspec.json.Decoder(str)


def read(body: bytes) -> list[LinkSeen]:
    return section_bodies.read(body, _LINKS, [])


def without(body: bytes, target: str) -> bytes:
    """The same, of a version that says more too, but for what it says of this cluster; itself if that is nothing."""
    if target.encode() not in body:
        return body
    try:
        said = _ANY.decode(body)
        kept = [one for one in said if "target" not in one or _TARGET.decode(one["target"]) != target]
    except section_bodies.UNREADABLE:
        return body
    return body if len(kept) == len(said) else msgspec.json.encode(kept)
