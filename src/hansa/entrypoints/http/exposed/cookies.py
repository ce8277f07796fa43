"""Which cookies pass between a visitor and a tenant's process? Its own, and only below its own path.

Cookies know neither ports nor services: without this, one tenant could read what another, or the manager, set.
"""

import re
from collections.abc import Iterable, Iterator

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[\x20-\x7e\x80-\xff]*")
_BELOW = re.compile(r"(/[A-Za-z0-9_~!$&'()*+,=:@-][A-Za-z0-9._~!$&'()*+,=:@-]*)*/?")  # no dot first, nothing encoded
_OURS = re.compile(r"oscar_service_.*_auth|hansa([-_].*)?")
_WHOLE_HOST = "__host-"  # browsers take such a cookie for the path / only


def cookie_name(service: str) -> str:
    """The cookie `/auth` sets; OSCAR's name for it."""
    return f"oscar_service_{service.replace('-', '_')}_auth"


def given(headers: Iterable[str], name: str) -> Iterator[str]:
    """Every value a visitor's Cookie headers have for a name: there may be several, and not all ours."""
    for part in _parts(headers):
        key, equals, value = part.partition("=")
        if equals and key.rstrip() == name:
            yield value.strip().strip('"')


def for_service(headers: Iterable[str]) -> str:
    """The one Cookie header a service gets: everything but ours."""
    return "; ".join(part for part in _parts(headers) if not _is_ours(part.partition("=")[0]))


def confined(header: str, base: str) -> str:
    """A service's Set-Cookie, good below its own base path only; nothing if it must not be set at all."""
    pair, *attributes = header.split(";")
    name, equals, value = pair.strip().partition("=")
    name = name.strip()
    if not equals or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
        return ""  # a cookie without a name can look like any other when it comes back
    if _is_ours(name) or name.lower().startswith(_WHOLE_HOST):
        return ""
    kept, path = [f"{name}={value.strip()}"], base
    for attribute in attributes:
        key = attribute.partition("=")[0].strip().lower()
        if key == "path":
            path = _within(attribute.partition("=")[2].strip(), base)
        elif key != "domain" and _VALUE.fullmatch(attribute):
            kept.append(attribute.strip())
    return "; ".join([*kept, f"Path={path}"])


def _within(path: str, base: str) -> str:
    return path if path.startswith(f"{base}/") and _BELOW.fullmatch(path[len(base) :]) else base


def _is_ours(name: str) -> bool:
    """In any spelling somebody could take for ours."""
    plain = name.strip().strip('"').strip().lower()
    return bool(_OURS.fullmatch(plain.removeprefix("__host-").removeprefix("__secure-")))


def _parts(headers: Iterable[str]) -> Iterator[str]:
    for header in headers:
        yield from (part for one in header.split(";") if (part := one.strip()))
