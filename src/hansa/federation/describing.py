"""Can what a cluster says of itself be registered? Bounded, printable, and an address that can be called. Pure."""

from urllib.parse import urlsplit

import msgspec

from hansa.federation.errors import BadFacts
from hansa.messages.clusters import Facts

_LARGEST = 32 * 1024  # bytes of all, as JSON
_LONGEST = {"name": 200, "description": 2000, "endpoint": 500, "region": 100, "zone": 100, "version": 100}


def reported(facts: Facts) -> Facts:
    """The same, of a cluster that is known. Its address is no more than a wish: whoever decides about it sees whether
    it is one at all. Raises `BadFacts`."""
    checked(msgspec.structs.replace(facts, endpoint=""))
    return msgspec.structs.replace(facts, endpoint=facts.endpoint[: _LONGEST["endpoint"]])


def checked(facts: Facts) -> Facts:
    """The same facts. Raises `BadFacts`."""
    for field, most in _LONGEST.items():
        if len(getattr(facts, field)) > most:
            raise BadFacts(f"{field} is longer than {most} characters", hint="shorten it")
    document = msgspec.json.encode(facts)
    if len(document) > _LARGEST:
        raise BadFacts(f"all together is larger than {_LARGEST} bytes", hint="keep fewer labels in metadata")
    if b"\\u0000" in document:
        raise BadFacts("a text contains a NUL character")
    if facts.endpoint:
        _check_endpoint(facts.endpoint)
    where = facts.coordinates
    if where is not None and not (abs(where.latitude) <= 90 and abs(where.longitude) <= 180):
        raise BadFacts("the coordinates are not on this planet", hint="latitude -90 to 90, longitude -180 to 180")
    return facts


def _check_endpoint(url: str) -> None:
    hint = "set cluster.public_url to a plain address such as https://lubeck.example.org"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise BadFacts("the endpoint cannot be read as an address", hint=hint) from None
    plain = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment)
    # A password in it would be shown to everybody.
    if not plain or parts.username or parts.password or port == 0 or any(c.isspace() or ord(c) < 32 for c in url):
        raise BadFacts("the endpoint is not a plain http(s) address", hint=hint)
