"""The HTTP door: `serve` runs a manager until it is told to stop."""

import asyncio
import contextlib
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import structlog
import uvicorn

from hansa import bootstrap
from hansa.entrypoints import loops, telemetry
from hansa.entrypoints.http import app as application
from hansa.entrypoints.http.protocol import Protocol
from hansa.kernel.errors import HansaError, Kind
from hansa.settings import Settings

_log = structlog.get_logger("hansa")
_GRACE = 5  # seconds for answers under way when the manager stops


def serve(settings: Settings) -> None:
    """Runs until SIGTERM or SIGINT; raises a `HansaError` if it cannot start."""
    telemetry.set_up_logs(settings.log)
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn_loop = uvicorn.Config("", loop="uvloop", log_config=None).get_loop_factory()
        with asyncio.Runner(loop_factory=uvicorn_loop) as runner:
            runner.run(_serve(settings))


class _Server(uvicorn.Server):
    """Stops on a signal as uvicorn does, but the process lives on: the parts behind it stop afterwards, in order."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for one in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(one, self.handle_exit, one, None)
        yield  # the handlers stay: a second signal while the parts stop must not cut them short


class CannotServe(HansaError):
    """The manager cannot start where the settings say."""

    code, kind = "server.cannot-start", Kind.UNAVAILABLE


def _listening(host: str, port: int) -> list[socket.socket]:
    """Bound before anything else starts, so that a taken port costs nothing; nobody gets in before `serve`."""
    bound: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            bound.append(one := socket.socket(family, kind, protocol))
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind(address)
    except OSError as error:
        for one in bound:
            one.close()
        raise CannotServe(
            f"cannot listen on {host} port {port}: {error.strerror}",
            hint="set http.host to an address of this machine and http.port to a free port",
        ) from None
    return bound


def _prepare(data: Path) -> None:
    try:
        data.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=data).close()
    except OSError as error:
        raise CannotServe(
            f"the data folder {data} cannot be used: {error.strerror}",
            hint="set data to a folder this user may write to",
        ) from None


async def _serve(settings: Settings) -> None:
    _prepare(settings.data)
    sockets = _listening(settings.http.host, settings.http.port)
    port = sockets[0].getsockname()[1]
    async with bootstrap.opened(settings) as app:
        config = uvicorn.Config(
            application.make(app),
            log_config=None,
            access_log=False,
            http=Protocol,
            ws="websockets-sansio",
            timeout_graceful_shutdown=_GRACE,
            timeout_keep_alive=30,
            server_header=False,
            proxy_headers=False,
        )
        server = _Server(config)
        async with loops.running(app):
            _log.info("manager", cluster=settings.cluster.id, host=settings.http.host, port=port)
            await server.serve(sockets)
    _log.info("stopped", cluster=settings.cluster.id)
