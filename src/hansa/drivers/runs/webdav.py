"""How do outputs reach a WebDAV server (dCache, Nextcloud)? One PUT each, with its folders made before."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from hansa.kernel import errors

_CHUNK = 256 * 1024
_EXISTS = frozenset({200, 201, 204, 301, 302, 405})


class WebDav:
    """One server, with the service's login."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        host = str(config.get("hostname", "")).strip().rstrip("/")
        base = host if "://" in host else f"https://{host}"
        login = (str(config.get("login", "")), str(config.get("password", "")))
        self._made: set[str] = set()
        self._http = httpx.AsyncClient(base_url=base, auth=login if login[0] else None, timeout=30)

    async def upload(self, bucket: str, key: str, source: Path) -> None:
        """`bucket` is simply the first folder here."""
        *folders, name = [quote(step) for step in f"{bucket}/{key}".split("/") if step]
        for depth in range(len(folders)):
            await self._folder("/".join(folders[: depth + 1]))
        size = os.stat(source).st_size
        answer = await self._ask(
            "PUT", "/".join([*folders, name]), content=_chunks(source), headers={"Content-Length": str(size)}
        )
        if not answer.is_success:
            raise _refused(f"{bucket}/{key}", answer.status_code)

    async def close(self) -> None:
        await self._http.aclose()

    async def _folder(self, path: str) -> None:
        if path in self._made:
            return
        answer = await self._ask("MKCOL", f"{path}/")
        if answer.status_code not in _EXISTS:
            raise _refused(path, answer.status_code)
        self._made.add(path)

    async def _ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        try:
            return await self._http.request(method, f"/{path}", **more)
        except httpx.TransportError as error:
            raise errors.Temporary(f"the WebDAV server does not answer: {type(error).__name__}") from error
        except httpx.InvalidURL as error:
            raise errors.Invalid("the WebDAV server's hostname is not valid") from error


async def _chunks(source: Path) -> AsyncIterator[bytes]:
    file = await asyncio.to_thread(open, source, "rb")
    try:
        while chunk := await asyncio.to_thread(file.read, _CHUNK):
            yield chunk
    finally:
        file.close()


def _refused(what: str, status: int) -> errors.HansaError:
    if status in (401, 403):
        return errors.Forbidden(f"the WebDAV server refused {what}", hint="check login and password")
    if status >= 500 or status in (408, 423, 429):
        return errors.Temporary(f"the WebDAV server answered {status} for {what}")
    return errors.Invalid(f"the WebDAV server answered {status} for {what}")
