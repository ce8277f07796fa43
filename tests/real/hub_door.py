"""A hub inside the test: its room at hand, its doors on loopback, the members' one over real TLS.

    async with hub_door(tmp_path) as door:
        text = await door.token(cluster="visby")
        door.move(hours=25)          # the hub's clock; nothing else brings it back, for no loop runs

For what a process of its own is needed there is `real.hub`.
"""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from hansa import bootstrap
from hansa.entrypoints.http.hub import app as applications
from hansa.entrypoints.http.hub.members_protocol import MembersProtocol
from hansa.entrypoints.http.hub.tls import MembersTls
from hansa.entrypoints.http.protocol import Protocol
from hansa.federation import Fence, Hub, syncing, tokens
from hansa.identity import Caller
from hansa.messages.clusters import NewToken
from hansa.settings import Settings

ADMIN = Caller.admin()
PASSWORD = "open sesame"


@dataclass(frozen=True, slots=True)
class HubDoor:
    app: bootstrap.HubApp
    members: str
    people: str

    @property
    def hub(self) -> Hub:
        return self.app.hub

    async def token(self, **asked: Any) -> str:
        return (await tokens.create(self.hub, ADMIN, NewToken(**asked))).token

    def move(self, hours: float) -> None:
        now = time.monotonic()
        self.hub.clock.learn(self.hub.clock.now() + hours * 3600, now)

    async def now(self) -> None:
        """Back to the database's clock, and in step with it."""
        await syncing.learn(self.hub)

    async def fence(self, work: str = "authority") -> Fence:
        held = await self.hub.leases.hold(work, 60)
        assert held is not None
        return held


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@asynccontextmanager
async def served(api: ASGIApp, tls: MembersTls | None = None) -> AsyncIterator[int]:
    """The port it answers on."""
    config = uvicorn.Config(
        api,
        log_config=None,
        http=MembersProtocol if tls else Protocol,
        lifespan="off",
        timeout_graceful_shutdown=2,
        timeout_keep_alive=60,
        proxy_headers=False,
        ssl_context_factory=(lambda _config, _default: tls.context) if tls else None,
    )
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = _Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    serving = asyncio.create_task(server._serve([listening]))
    try:
        async with asyncio.timeout(30):
            await server.ready.wait()
        yield int(listening.getsockname()[1])
    finally:
        server.should_exit = True
        async with asyncio.timeout(30):
            await serving
        listening.close()


@asynccontextmanager
async def hub_door(folder: Path, *, database: str = "", **settings: Any) -> AsyncIterator[HubDoor]:
    document: dict[str, Any] = {
        "data": folder,
        "role": "hub",
        "admin": {"password": PASSWORD},
        "hub": {"key_file": folder / "shared.key", **settings},
        "database": {"url": database},
    }
    async with (
        bootstrap.opened_hub(Settings.model_validate(document)) as app,
        served(applications.for_members(app), MembersTls(app.hub)) as members,
        served(applications.for_people(app)) as people,
    ):
        yield HubDoor(app, f"https://127.0.0.1:{members}", f"http://127.0.0.1:{people}")
