"""The HTTP door: `serve` runs a manager until it is told to stop."""

import asyncio
import contextlib
import signal
from collections.abc import Iterator

import structlog
import uvicorn

from hansa import bootstrap
from hansa.entrypoints import loops, telemetry
from hansa.entrypoints.http import app as application
from hansa.entrypoints.http.protocol import Protocol
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


async def _serve(settings: Settings) -> None:
    async with bootstrap.opened(settings) as app:
        config = uvicorn.Config(
            application.make(app),
            host=settings.http.host,
            port=settings.http.port,
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
            _log.info("manager", cluster=settings.cluster.id, host=settings.http.host, port=settings.http.port)
            await server.serve()
    _log.info("stopped", cluster=settings.cluster.id)
