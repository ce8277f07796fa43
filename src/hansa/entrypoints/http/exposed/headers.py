"""Which headers pass between a visitor and a tenant's process, in each direction? Pure rules.

Towards the process: nothing a visitor showed to the manager, and nothing that speaks of one connection only. Back:
nothing that would hold for the whole origin, which the manager or other tenants share.
"""

import re
from collections.abc import Iterable, Sequence

from hansa.entrypoints.http.exposed import cookies

Raw = Sequence[tuple[bytes, bytes]]
SANDBOX = b"sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads"

_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
     b"trailer", b"transfer-encoding", b"upgrade"}
)  # fmt: skip
# The door states these itself, as far as they are needed, whatever Connection names.
_STATED = frozenset({b"host", b"content-length", b"x-forwarded-prefix", b"cookie", b"expect"})
_SHOWN_TO_US = frozenset({b"authorization", b"proxy-authorization"})
_INWARD_OUT = _HOP | _STATED | _SHOWN_TO_US
_WHOLE_ORIGIN = frozenset(
    {b"service-worker-allowed", b"clear-site-data", b"strict-transport-security", b"alt-svc", b"public-key-pins",
     b"public-key-pins-report-only", b"nel", b"report-to", b"accept-ch", b"set-cookie2",
     # a password asked for in the manager's name; it would not be passed on anyway
     b"www-authenticate", b"authentication-info",
     # orders to a proxy in front of the manager
     b"x-accel-redirect", b"x-sendfile", b"x-lighttpd-send-file"}
)  # fmt: skip
_AGREED = (b"sec-websocket-accept:", b"sec-websocket-protocol:", b"sec-websocket-extensions:")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")  # some readers end a line at one of them
_OUTWARD_OUT = _HOP | _WHOLE_ORIGIN | {b"x-content-type-options"}  # every answer of the manager has its own


def inward(raw: Raw) -> list[tuple[bytes, bytes]]:
    """A visitor's headers as far as the process gets them as they are; `_STATED` ones are the door's to add. Programs
    that read `_` as `-` must not find under one spelling what is kept from them under the other."""
    out = _INWARD_OUT | _named(raw)
    return [(name, value) for name, value in raw if name.lower().replace(b"_", b"-") not in out]


def cookie(raw: Raw) -> str:
    """What the process gets as its Cookie header; may be empty."""
    return cookies.for_service(value.decode("latin-1") for name, value in raw if name.lower() == b"cookie")


def outward(raw: Raw, base: str, *, sandboxed: bool) -> list[tuple[bytes, bytes]]:
    """The process's headers as a visitor gets them; `base` is the path its cookies are confined to."""
    out = _OUTWARD_OUT | (_named(raw) - {b"content-length", b"content-type"})
    kept: list[tuple[bytes, bytes]] = []
    for name, value in raw:
        key = name.lower()
        if key == b"set-cookie":
            if confined := cookies.confined(value.decode("latin-1"), base):
                kept.append((name, confined.encode("latin-1")))
        elif key not in out:
            kept.append((name, value))
    if sandboxed:  # a policy of its own: beside the service's, which may only be stricter
        kept.append((b"content-security-policy", SANDBOX))
    return kept


def agreed(lines: Iterable[bytes]) -> list[bytes]:
    """What a visitor gets of the lines by which the process agrees to a WebSocket."""
    return [line for line in lines if line.lower().startswith(_AGREED) and not _CONTROL.search(line)]


def _named(raw: Raw) -> frozenset[bytes]:
    """What Connection names is for this connection only."""
    return frozenset(_words(value for name, value in raw if name.lower() == b"connection"))


def _words(values: Iterable[bytes]) -> Iterable[bytes]:
    for value in values:
        yield from (word for one in value.split(b",") if (word := one.strip().lower()))
