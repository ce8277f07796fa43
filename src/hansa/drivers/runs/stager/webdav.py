"""How do outputs reach a WebDAV server (dCache, Nextcloud)? One PUT each, with its folders made before."""

import base64
from urllib.parse import quote

from .errors import Refused, Trouble
from .plan import Store
from .web import Answer, Body, Dial, Server, Web

_EXISTS = frozenset({200, 201, 204, 301, 302, 405})
_REMEMBERED = 10_000


class WebDav:
    """One server, with the service's login."""

    def __init__(self, store: Store, dial: Dial, remembered: int = _REMEMBERED) -> None:
        """`remembered`: folders that are known to be there; how many there are is the script's to say."""
        self._web = Web(Server.at(store.endpoint), dial, verify=store.verify)
        login = base64.b64encode(f"{store.access_key}:{store.secret_key}".encode()).decode()
        self._headers = {"authorization": f"Basic {login}"} if store.access_key else {}
        self._made: set[str] = set()
        self._remembered = remembered

    def close(self) -> None:
        self._web.close()

    def upload(self, bucket: str, key: str, fd: int, size: int) -> None:
        """`bucket` is simply the first folder here."""
        *folders, name = [quote(step, safe="") for step in f"{bucket}/{key}".split("/") if step]
        for depth in range(len(folders)):
            self._folder("/".join(folders[: depth + 1]))
        answer = self._web.ask("PUT", self._target("/".join([*folders, name])), self._headers, Body(fd, 0, size))
        if answer.status not in (200, 201, 204):
            raise _trouble(answer)

    def _folder(self, path: str) -> None:
        if path not in self._made:
            answer = self._web.ask("MKCOL", self._target(f"{path}/"), self._headers)
            if answer.status not in _EXISTS:
                raise _trouble(answer)
            if len(self._made) >= self._remembered:
                self._made.clear()  # to make one again does no harm
            self._made.add(path)

    def _target(self, path: str) -> str:
        return f"{self._web.server.path}/{path}"


def _trouble(answer: Answer) -> Refused | Trouble:
    if answer.status in (401, 403):
        return Refused("the WebDAV server refused it: check login and password")
    if answer.status >= 500 or answer.status in (408, 423, 429):
        return Trouble(f"the WebDAV server answered {answer.status}")
    return Refused(f"the WebDAV server answered {answer.status}")
