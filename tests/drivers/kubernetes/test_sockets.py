"""Whoever gives up a call leaves no connection behind, also in the middle of its handshake."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from lightkube.resources.core_v1 import Namespace

from hansa.drivers.kubernetes.connection import Connection

SECONDS = 10.0


class Silent:
    """Takes connections and never says a word."""

    def __init__(self) -> None:
        self.came = asyncio.Event()
        self.left = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(4096):
            self.came.set()  # its first word: the handshake has begun
        self.left.set()
        writer.close()


@pytest.fixture
async def silent(tmp_path: Path) -> AsyncIterator[tuple[Silent, Connection]]:
    found = Silent()
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    address = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    file = tmp_path / "config"
    file.write_text(
        json.dumps(
            {
                "clusters": [{"name": "c", "cluster": {"server": address, "insecure-skip-tls-verify": True}}],
                "users": [{"name": "u", "user": {"token": "x"}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    api = Connection.open(file)
    yield found, api
    await api.close()
    server.close()


async def test_a_call_that_is_cancelled_in_its_handshake_closes_its_connection(
    silent: tuple[Silent, Connection],
) -> None:
    server, api = silent
    asking = asyncio.create_task(api.get(Namespace, "x"))
    async with asyncio.timeout(SECONDS):
        await server.came.wait()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await server.left.wait()
