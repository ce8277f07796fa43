"""May this visitor reach an exposed service? Everybody may if it is public; else whoever may see it, or has its token.

`set_auth` asks for credentials of a public service too. What a visitor shows is used here and goes no further.
"""

import base64
import binascii
from itertools import islice
from urllib.parse import parse_qsl

from starlette.requests import HTTPConnection

from hansa.bootstrap import App
from hansa.entrypoints.http import cross_site
from hansa.entrypoints.http.clients import address_of
from hansa.entrypoints.http.context import authorization_of, log_caller
from hansa.entrypoints.http.exposed import cookies
from hansa.entrypoints.http.exposed.paths import base_of
from hansa.identity import Caller, access, errors, looks_like_service_token, same_secret, service_caller
from hansa.kernel.errors import Forbidden
from hansa.services import Record, Service

_MOST_COOKIES = 4  # of one name


def is_open(app: App, service: Service) -> bool:
    return service.asks_nobody(private_too=app.settings.exposed.access == "open")


async def check(app: App, record: Record, visitor: HTTPConnection) -> None:
    """Raises if this visitor may not in."""
    service = record.service
    if is_open(app, service):
        return
    if caller_by_cookie(app, service, visitor) is not None:
        _meant(app, visitor)
        return
    authorization = authorization_of(visitor)
    if service.expose.auth_type == "forward" and _has_token(visitor, service.token):
        return
    if not authorization:
        raise errors.CredentialsMissing(
            f"service {service.name} asks for credentials",
            hint="user: the service's name, password: its token; or your own access token as bearer",
        )
    if authorization.lower().startswith("basic"):
        _meant(app, visitor)
    caller = log_caller(await _caller(app, service, visitor, authorization))
    if not may_visit(caller, service):
        raise Forbidden(f"you may not visit service {service.name}", hint="ask its owner to share it with you")


def may_visit(caller: Caller, service: Service) -> bool:
    if caller.kind == "service":
        return caller.service == service.name
    return access.may_see(caller, owner=service.owner, visibility=service.visibility, allowed=service.allowed_users)


def caller_by_cookie(app: App, service: Service, visitor: HTTPConnection) -> Caller | None:
    """Who came before, got a visit, and may still in."""
    given = cookies.given(visitor.headers.getlist("cookie"), cookies.cookie_name(service.name))
    for one in islice(given, _MOST_COOKIES):
        caller = app.visits.caller(one, service=service.name, token=service.token)
        if caller is not None and may_visit(caller, service):
            return log_caller(caller)
    return None


def target(record: Record, visitor: HTTPConnection) -> bytes:
    """What the process is asked for. `rewrite_target` hides the prefix; else it sees the whole path. The service's
    own token is left out of the query: what let the visitor in is not the process's business."""
    path: bytes = visitor.scope.get("raw_path") or visitor.url.path.encode()
    if record.service.expose.rewrite_target:
        path = path.removeprefix(base_of(record.service.name).encode()) or b"/"
    query: bytes = visitor.scope["query_string"]
    if b"token=" in query:
        ours = ("token", record.service.token)
        query = b"&".join(part for part in query.split(b"&") if ours not in parse_qsl(part.decode("latin-1")))
    return path + (b"?" + query if query else b"")


async def _caller(app: App, service: Service, visitor: HTTPConnection, authorization: str) -> Caller:
    """The service's token as bearer or as Basic password of a user named like the service; else a person's sign-in."""
    given = _service_token(authorization, service.name)
    if given is not None:
        return service_caller(given, service=service.name, owner=service.owner, expected=service.token)
    return await app.sign_in.caller(authorization, address_of(visitor))


def _service_token(authorization: str, service: str) -> str | None:
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip() if looks_like_service_token(value.strip()) else None
    if scheme.lower() != "basic":
        return None
    try:
        user, _, password = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    return password if user == service else None


def _has_token(visitor: HTTPConnection, token: str) -> bool:
    given = visitor.query_params.get("token", "")
    return bool(given) and same_secret(given, token)


def _meant(app: App, visitor: HTTPConnection) -> None:
    """Cookies and passwords are sent by browsers whoever asks: a page of another site must not use them to change
    something, or to talk over a WebSocket."""
    if visitor.scope.get("method") in cross_site.SAFE:
        return
    if not cross_site.is_own(visitor.headers.raw, app.settings.cluster.public_url):
        raise cross_site.CrossSite(
            "a page of another site may not use your sign-in here",
            hint="open the service's own page",
        )
