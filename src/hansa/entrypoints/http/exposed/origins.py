"""At which origin does a tenant's page live? The manager's own, one for all tenants, or one for each service.

Browsers protect origins from each other, not paths. So a page is free only where nobody else lives; anywhere else it
is sandboxed. On a host name or port for pages nothing but pages answers.
"""

import re
from dataclasses import dataclass

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from hansa.entrypoints.http.exposed import paths
from hansa.kernel.tenants import ExposedSettings

_SERVICE = "{service}"
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_PLACE = "hansa.page"  # in the scope: whose origin this is; "" is all tenants'
_NOBODYS = 1008  # a WebSocket's way to say no


@dataclass(frozen=True, slots=True)
class Origins:
    """As the operator set them up."""

    settings: ExposedSettings

    def place(self, host: str) -> str | None:
        """Whose page lives at this host: a service's, "" for all services', None for the manager."""
        url = self.settings.url.lower()
        if not url:
            return None
        scheme, _, wanted = url.partition("://")
        pattern = re.escape(_bare(scheme, wanted)).replace(re.escape(_SERVICE), r"([a-z0-9-]+)")
        found = re.fullmatch(pattern, _bare(scheme, host.strip().lower()))
        return None if found is None else "".join(found.groups())

    def is_sandboxed(self, visitor: HTTPConnection) -> bool:
        """Whether somebody else lives at the origin of this page."""
        return self.settings.sandbox and not visitor.scope.get(_PLACE)

    def moved(self, visitor: HTTPConnection, service: str) -> str:
        """Where a person who opens this page at the manager's own origin belongs; programs are served here."""
        opens = visitor.headers.get("sec-fetch-mode") == "navigate" and visitor.scope.get("method") == "GET"
        if not opens or not self.settings.url or _PLACE in visitor.scope:
            return ""
        path = (visitor.scope.get("raw_path") or visitor.url.path.encode()).decode("latin-1")
        query = visitor.scope["query_string"].decode("latin-1")
        return self.settings.url.replace(_SERVICE, service) + path + (f"?{query}" if query else "")


class PagesOnly:
    """Before the application: at a host or port for pages, only pages and their `/auth` answer."""

    def __init__(self, app: ASGIApp, origins: Origins, *, always: bool) -> None:
        self._app = app
        self._origins = origins
        self._always = always  # this port is for pages, whatever the host is called

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        place = self._origins.place(HTTPConnection(scope).headers.get("host", ""))
        if place is None and not self._always:
            await self._app(scope, receive, send)
            return
        name = paths.service_in(scope["path"]) or paths.auth_in(scope["path"])
        if name and place in (name, "", None):
            await self._app({**scope, _PLACE: place or ""}, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _NOBODYS})
        else:
            await PlainTextResponse("404 page not found", 404)(scope, receive, send)


def _bare(scheme: str, host: str) -> str:
    return host.removesuffix(_DEFAULT_PORTS[scheme])
