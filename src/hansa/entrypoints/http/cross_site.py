"""Does a request that changes something come from another site's page? Then the visitor never meant it.

Browsers say so by headers that no page can write: `Sec-Fetch-Site`, and `Origin` with everything that is not a GET.
Programs on a command line send neither and are not concerned. Tenants' own pages decide for themselves.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

from hansa.kernel.errors import Forbidden

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OURS = frozenset({b"same-origin", b"none"})  # "none" is the visitor's own doing, such as a bookmark
_FORM_TYPES = frozenset({b"text/plain", b"application/x-www-form-urlencoded", b"multipart/form-data"})
_ANY_BODY = ("/job/", "/run/")  # take what the script can read, whatever it is
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
Raw = Sequence[tuple[bytes, bytes]]


class CrossSite(Forbidden):
    """A page of another site asked a browser to change something here."""

    code = "request.cross-site"


def check(path: str, raw: Raw, own_url: str = "") -> None:
    """Raises `CrossSite`. For requests that change something, and are not a tenant's own affair."""
    origins, types = [], []
    for name, value in raw:
        if name == b"origin":
            origins.append(value)
        elif name == b"content-type":
            types.append(value)
        elif name == b"sec-fetch-site" and value.strip().lower() not in _OURS:
            raise _refused()
    if not origins:
        return
    if not is_own(raw, own_url):
        raise _refused()
    if not path.startswith(_ANY_BODY) and any(_kind(one) in _FORM_TYPES for one in types):
        raise CrossSite(
            "a page sent this as a form would, which pages of other sites can do too",
            hint="send JSON with Content-Type: application/json",
        )


def is_own(raw: Raw, own_url: str = "") -> bool:
    """Whether no browser says that a page of another origin asks. Without a word of a browser it is so."""
    origins = [value for name, value in raw if name == b"origin"]
    sites = {value.strip().lower() for name, value in raw if name == b"sec-fetch-site"}
    if not sites <= _OURS or len(origins) > 1:
        return False
    if not origins:
        return True
    origin = origins[0].decode("latin-1").strip().lower()
    if own_url and origin == _origin(own_url):
        return True
    scheme = origin.partition("://")[0]
    hosts = {_host(f"{scheme}://{value.decode('latin-1').strip().lower()}") for name, value in raw if name == b"host"}
    return _host(origin) in hosts - {""}


def _kind(content_type: bytes) -> bytes:
    return content_type.partition(b";")[0].strip().lower()


def _origin(url: str) -> str:
    parts = urlsplit(url.lower())
    return f"{parts.scheme}://{parts.netloc}"


def _host(origin: str) -> str:
    """Host and port, without a port that goes without saying; nothing for what is no origin ("null")."""
    scheme, separator, host = origin.partition("://")
    return host.removesuffix(_DEFAULT_PORTS.get(scheme, "")) if separator and scheme in _DEFAULT_PORTS else ""


def _refused() -> CrossSite:
    return CrossSite(
        "a page of another site may not change anything here",
        hint="use the command line, or a page of this address; a proxy in front must pass the Host header on, or "
        "cluster.public_url must name its address",
    )
