"""How does the command line talk to a manager? OSCAR's REST API over httpx, with limits on every wait.

Commands get a `Manager` from `session.py`. Whatever goes wrong on the way comes out as a typed error with a
hint; `app.py` turns that into a line on stderr and an exit code.
"""

import json
import math
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from hansa import __version__
from hansa.entrypoints.cli import detours
from hansa.kernel import errors

PATIENCE = 20.0  # seconds a usual call may take; callers give more where a manager has real work to do
_CONNECT = 10.0
_MOST_PAGES = 10_000  # a manager that never ends its pages must not keep us for ever


class Unexpected(errors.HansaError):
    """The manager answered something this client does not understand."""

    code = "cli.unexpected-answer"


class Bearer(httpx.Auth):
    """Signs every request with the token the supplier holds at that moment."""

    def __init__(self, supply: Callable[[], str]) -> None:
        self._supply = supply

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = f"Bearer {self._supply()}"
        yield request


def limits(seconds: float) -> httpx.Timeout:
    return httpx.Timeout(seconds, connect=min(_CONNECT, seconds))


def segment(name: str) -> str:
    """A name as one piece of a path, whatever it contains."""
    if name in ("", ".", ".."):
        raise errors.Invalid(f"{name!r} is not a name")
    return quote(name, safe="")


class Manager:
    """One cluster's manager, as its REST API shows it."""

    def __init__(
        self,
        url: str,
        auth: httpx.Auth | None = None,
        *,
        name: str = "",
        verify: bool = True,
        basic: bool = False,
        connect_to: str = "",
    ) -> None:
        self.url = url
        self.name = name or url
        self.basic = basic  # signed in as the admin, whom `/job` and `/run` do not accept
        self.verify = verify
        self.connect_to = connect_to  # instead of the host in `url`
        self._http = httpx.Client(
            base_url=url,
            auth=auth,
            verify=verify,
            mounts=detours.mounts(url, connect_to, verify=verify),
            timeout=limits(PATIENCE),
            headers={"User-Agent": f"hansa/{__version__}", "Accept": "application/json, */*"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self._http.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        what: str = "",
        body: Any = None,
        content: bytes | Iterable[bytes] | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        token: str = "",
        timeout: float = PATIENCE,
        also: Container[int] = (),
    ) -> httpx.Response:
        """One request; any answer but 2xx, and those statuses in `also`, raises.

        `what` names the thing asked for, for the message.
        """
        sent = dict(headers or {})
        if body is not None:
            content = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        try:
            response = self._http.request(
                method,
                path,
                content=content,
                params=params,
                headers=sent,
                timeout=limits(timeout),
                auth=Bearer(lambda: token) if token else httpx.USE_CLIENT_DEFAULT,
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise unreachable(error, self.name, self.url, timeout) from error
        if not response.is_success and response.status_code not in also:
            raise refusal(response, self.name, what)
        return response

    def read(self, path: str, *, what: str = "", **params: str) -> Any:
        """The JSON at a path."""
        return document(self.call("GET", path, what=what, params=params or None), self.name)

    def keeps_secrets(self) -> bool:
        """Whether credentials in a definition are kept encrypted there and shown to nobody: Hansa's managers do so."""
        try:
            answer = self.call("GET", "/v1/about", what="the manager")
        except errors.HansaError:
            return False
        return answer.headers.get("content-type", "").startswith("application/json") and b'"hansa"' in answer.content

    def service(self, name: str, *, deployment: bool = False) -> dict[str, Any]:
        params = {"include": "deployment"} if deployment else {}
        return mapping(self.read(f"/system/services/{segment(name)}", what=f"service {name}", **params), self.name)

    def jobs(self, service: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every job of a service, page by page."""
        page = ""
        for _ in range(_MOST_PAGES):
            answer = self.read(f"/system/logs/{segment(service)}", what=f"service {service}", page=page)
            answer = mapping(answer, self.name)
            # Older managers answer the bare map of jobs, without pages.
            listed = answer["jobs"] if isinstance(answer.get("jobs"), dict) else answer
            for name, job in listed.items():
                if isinstance(job, dict):
                    yield name, job
            following = answer.get("next_page")
            if not isinstance(following, str) or not following or following == page:
                return
            page = following

    def story(self, job: str) -> dict[str, Any]:
        """Why a job waits or ended, and where it went; nothing where a manager does not tell such things."""
        try:
            return mapping(self.read(f"/v1/jobs/{segment(job)}", what=f"job {job}"), self.name)
        except errors.HansaError:
            return {}

    def log(self, service: str, job: str, *, timestamps: bool = False) -> bytes:
        path = f"/system/logs/{segment(service)}/{segment(job)}"
        params = {"timestamps": "true"} if timestamps else None
        return self.call("GET", path, what=f"log of job {job}", params=params, timeout=60).content


def document(response: httpx.Response, name: str) -> Any:
    """The JSON of an answer. An empty 200 is how OSCAR says "not for you" on some routes."""
    if not response.content:
        raise errors.Forbidden(f"{name} gave an empty answer", hint="you may have no access to it")
    try:
        return response.json()
    except ValueError:
        raise Unexpected(
            f"{name} did not answer in JSON", hint="is the URL that of an OSCAR or Hansa manager?"
        ) from None


def mapping(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unexpected(f"{name} answered a {type(value).__name__} where a map was due")
    return value


def sequence(value: Any, name: str) -> list[dict[str, Any]]:
    """A list of maps; OSCAR writes null for an empty one."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Unexpected(f"{name} answered a {type(value).__name__} where a list was due")
    return value


def unreachable(error: Exception, name: str, url: str, seconds: float) -> errors.HansaError:
    """What a failed exchange means."""
    if isinstance(error, (httpx.InvalidURL, httpx.UnsupportedProtocol)):
        return errors.Invalid(f"{url} is not a usable address: {error}", hint="write it as https://host:port")
    if isinstance(error, httpx.ConnectTimeout):
        return errors.Temporary(f"{name} cannot be reached at {url}: no answer", hint="is the address right?")
    if isinstance(error, httpx.TimeoutException):
        return errors.Temporary(
            f"{name} did not answer within {math.ceil(seconds)} s",
            hint="try again, or give --timeout where offered",
        )
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return errors.Temporary(
            f"the certificate of {url} is not trusted",
            hint="set SSL_CERT_FILE to its authority, or sign in with --insecure if you know what you do",
        )
    return errors.Temporary(
        f"{name} cannot be reached at {url}: {str(error) or type(error).__name__}",
        hint="is the manager running, and the address right?",
    )


_KINDS: dict[int, type[errors.HansaError]] = {
    400: errors.Invalid,
    401: errors.Unauthenticated,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    413: errors.TooLarge,
    429: errors.Temporary,
    502: errors.Temporary,
    503: errors.Temporary,
    504: errors.Temporary,
}
_HINTS = {401: "sign in with: hansa login", 403: "ask the owner or the cluster's admin for access"}


def refusal(response: httpx.Response, name: str, what: str = "") -> errors.HansaError:
    """The error an answer stands for, in the manager's own words where it gave some."""
    status = response.status_code
    if response.is_redirect:
        target = response.headers.get("location", "elsewhere")
        return Unexpected(f"{name} points to {target}", hint="sign in again with that address")
    said, hint = _words(response)
    hint = hint or _HINTS.get(status, "")
    if status == 404 and what and said in ("", "404 page not found"):
        said = f"there is no {what} in {name}"
    elif status == 401 and not said:
        said = f"{name} does not accept these credentials"
    elif not said:
        said = f"{name} answered {status} {response.reason_phrase}".rstrip()
    return _KINDS.get(status, errors.HansaError)(said, hint=hint)


def _words(response: httpx.Response) -> tuple[str, str]:
    """The message and hint in a body: problem document, {"error": …} or plain text."""
    text = response.text.strip()
    if text.startswith(("{", "[", '"')):
        try:
            body = response.json()
        except ValueError:
            body = None
        if isinstance(body, dict):
            said = body.get("detail") or body.get("error") or body.get("message") or body.get("title") or ""
            return str(said)[:1000], str(body.get("hint") or "")[:500]
        if isinstance(body, str):
            return body[:1000], ""
    if text.startswith("<"):  # a proxy's page says nothing a terminal should show
        return "", ""
    return _parted(text[:1000])


def _parted(text: str) -> tuple[str, str]:
    """Message and hint of a plain text: on OSCAR's routes a manager puts its hint behind the message, in brackets."""
    open_at, depth = len(text), 0
    if text.endswith(")"):
        for open_at in range(len(text) - 1, -1, -1):
            depth += {")": 1, "(": -1}.get(text[open_at], 0)
            if depth == 0:
                break
    if depth or not 0 < open_at < len(text) or text[open_at - 1] != " ":
        return text, ""
    return text[:open_at].rstrip(), text[open_at + 1 : -1]
