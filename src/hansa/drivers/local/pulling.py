"""How does an image come here, when a tenant names its registry? Podman pulls it in an empty network of its own.

That network holds a loopback and a proxy on it, which belongs to the manager and judges every address podman wants:
the registry's, its token server's, and wherever they redirect to. Programs in Go never ask a proxy for loopback; a
registry there, if the operator allowed it, is shown inside at its own port.
"""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import Protocol

from hansa.drivers.local.launch import LaunchFailed
from hansa.drivers.local.launcher import network
from hansa.kernel import ip_addresses

_PROXY_PORT = 3128
_REGISTRY = "docker.io"


class WayOut(Protocol):
    """Serves programs on a listening socket and dials for them, or refuses."""

    def serve(
        self, listening: socket.socket, fixed: tuple[str, int] | None = None
    ) -> AbstractAsyncContextManager[list[str]]:
        """With `fixed`, whoever connects is led there. Gives a list that grows with what was refused, in words."""
        ...


@dataclass(frozen=True, slots=True)
class Cell:
    """An empty network, as an open file, and what was refused to whoever is in it."""

    namespace: int
    variables: dict[str, str]
    refusals: list[list[str]]

    def refused(self) -> str:
        return next((each[0] for each in self.refusals if each), "")


@contextlib.asynccontextmanager
async def cell_for(image: str, way_out: WayOut) -> AsyncIterator[Cell]:
    """The network in which this image is pulled."""
    own = loopback_port(image)
    ports = [_PROXY_PORT, *([own] if own else [])]
    if own == _PROXY_PORT:
        raise LaunchFailed(f"a registry on this machine cannot have the port {own}")
    namespace, listening = await asyncio.to_thread(_in_a_thread_of_its_own, lambda: _furnished(ports))
    async with AsyncExitStack() as undo:
        undo.callback(os.close, namespace)
        for one in listening:
            undo.callback(one.close)
        refusals = [await undo.enter_async_context(way_out.serve(listening[0]))]
        if own:
            refusals.append(await undo.enter_async_context(way_out.serve(listening[1], ("127.0.0.1", own))))
        proxy = f"http://127.0.0.1:{_PROXY_PORT}"
        yield Cell(namespace, {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": ""}, refusals)


def loopback_port(image: str) -> int:
    """The port of the image's registry if that is on this machine's loopback, else 0."""
    first, slash, _ = image.partition("/")
    if not slash or not ("." in first or ":" in first or first == "localhost"):
        first = _REGISTRY
    host, _, port = first.partition(":")
    literal = ip_addresses.literal(host)
    if host != "localhost" and not (literal is not None and literal.is_loopback):
        return 0
    number = port or "443"
    return int(number) if number.isdigit() and 0 < int(number) < 65536 else 0


def _furnished(ports: list[int]) -> tuple[int, list[socket.socket]]:
    network.isolate(root=True, any_port=False)
    listening = []
    for port in ports:
        made = socket.create_server(("127.0.0.1", port), backlog=64)
        made.setblocking(False)
        listening.append(made)
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC), listening


def _in_a_thread_of_its_own(
    work: Callable[[], tuple[int, list[socket.socket]]],
) -> tuple[int, list[socket.socket]]:
    """A network namespace belongs to the thread that enters it, and this one ends there."""
    made: list[tuple[int, list[socket.socket]]] = []
    failed: list[OSError] = []

    def run() -> None:
        try:
            made.append(work())
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="network of a pull")
    thread.start()
    thread.join()
    if failed:
        raise LaunchFailed(f"no network for pulling images could be made: {failed[0]}") from failed[0]
    return made[0]
