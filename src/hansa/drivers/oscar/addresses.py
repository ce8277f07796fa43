"""Are two addresses of a manager the same, and is one plain enough to be trusted at all?

Credentials go to an address because it equals one the settings name, so there is one strict form, and what our parser
and the HTTP library could read differently (user names, backslashes, escapes, odd hosts) has none.
"""

import re
from urllib.parse import quote

from hansa.services import peers

_DEFAULT_PORT = {"http": "80", "https": "443"}
_PLAIN = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>[a-z0-9](?:[a-z0-9._-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>(?:/[A-Za-z0-9._~-]+)*)/?",
    re.ASCII,
)
_HEAD = re.compile(r"[A-Za-z]+://[^/]*")


def normal(url: str) -> str:
    """The one form of a manager's address; "" if it is not a plain http(s) URL."""
    head = _HEAD.match(url)
    if head is None:
        return ""
    match = _PLAIN.fullmatch(head.group().lower() + url[head.end() :])
    if match is None or any(step in (".", "..") for step in match["path"].split("/")):
        return ""
    scheme, host, port = match["scheme"], match["host"], match["port"]
    if port is not None and not 0 < int(port) < 65536:
        return ""
    number = str(int(port)) if port else _DEFAULT_PORT[scheme]
    shown = "" if number == _DEFAULT_PORT[scheme] else f":{number}"
    return f"{scheme}://{host}{shown}{match['path']}"


def below(endpoint: str, *steps: str) -> str:
    """The address of something at a peer. A name that would lead elsewhere on the way is refused, not sent."""
    for step in steps:
        if step in ("", ".", ".."):
            raise peers.PeerRefused(f"{step!r} is not a name one can ask a cluster for", status=400)
    return "/".join([endpoint, *(quote(step, safe="") for step in steps)])
