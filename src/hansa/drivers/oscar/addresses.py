"""How is something at a peer addressed? What an address of a manager is at all, `kernel.endpoints` knows."""

from urllib.parse import quote

from hansa.services import peers


def below(endpoint: str, *steps: str) -> str:
    """The address of something at a peer. A name that would lead elsewhere on the way is refused, not sent."""
    for step in steps:
        if step in ("", ".", ".."):
            raise peers.PeerRefused(f"{step!r} is not a name one can ask a cluster for", status=400)
    return "/".join([endpoint, *(quote(step, safe="") for step in steps)])
