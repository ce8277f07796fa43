"""A hub's door for people, on loopback and in this process, so that a test can also reach into the hub's memory."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.types import ASGIApp

from federation.known_clusters import record, sighting
from hansa import bootstrap
from hansa.bootstrap import HubApp
from hansa.entrypoints.http.hub import app as doors
from hansa.entrypoints.http.protocol import Protocol
from hansa.federation import Hub
from hansa.settings import Settings

PATIENCE = 20.0


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # they are the test's


@contextlib.asynccontextmanager
async def served(
    app: ASGIApp, before_stop: Callable[[], None] = lambda: None, protocol: type[Protocol] = Protocol
) -> AsyncIterator[int]:
    """The port it answers at."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=protocol, log_config=None, timeout_graceful_shutdown=5, lifespan="off")
    server = _Server(config)
    serving = asyncio.create_task(server.serve([listening]))
    try:
        await until(lambda: server.started)
        yield listening.getsockname()[1]
    finally:
        before_stop()
        server.should_exit = True
        await serving


class Scene:
    """A hub, whoever asks it, and clusters that say what a test wants."""

    def __init__(self, app: HubApp, port: int, client: httpx.AsyncClient) -> None:
        self.app = app
        self.hub: Hub = app.hub
        self.port = port
        self.client = client
        self._number = 0

    def cluster(self, ident: str, **told: Any) -> None:
        self.hub.registry.put(record(ident, **told))

    def hear(self, ident: str, **sections: Any) -> None:
        self._number += 1
        self.hub.registry.hear(sighting(ident, self._number, seen=self.hub.clock.now(), **sections))

    async def get(self, path: str, status: int = 200, **query: Any) -> Any:
        answer = await self.client.get(path, params=query)
        assert answer.status_code == status, answer.text
        if status >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
        return answer.json()


@contextlib.asynccontextmanager
async def hub_at_home(folder: Path) -> AsyncIterator[Scene]:
    given = Settings.model_validate({"data": folder, "role": "hub", "admin": {"password": "harbour"}})
    async with bootstrap.opened_hub(given) as app, served(doors.for_people(app), app.hub.streams.close) as port:
        url, who = f"http://127.0.0.1:{port}", httpx.BasicAuth("admin", "harbour")
        async with httpx.AsyncClient(base_url=url, auth=who, timeout=PATIENCE, trust_env=False) as client:
            yield Scene(app, port, client)


async def until(holds: Callable[[], object], seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not so after {seconds:g} s"
        await asyncio.sleep(0.01)
