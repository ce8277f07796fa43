"""The HTTP door: `serve` runs a manager, a hub or both until it is told to stop."""

import asyncio
import contextlib
import signal
import socket
import ssl
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import structlog
import uvicorn
from starlette.types import ASGIApp

from hansa import bootstrap
from hansa.entrypoints import hub_loops, loops, telemetry
from hansa.entrypoints.http import app as application
from hansa.entrypoints.http.exposed.tunnel import TunnelProtocol
from hansa.entrypoints.http.protocol import Protocol
from hansa.kernel.errors import HansaError, Kind
from hansa.settings import Settings

_log = structlog.get_logger("hansa")
_GROWTH = 1.25  # clusters that come while it runs
_GRACE = 5  # seconds for answers under way when the manager stops
_KEEP, _KEEP_MEMBERS = 30, 75  # seconds an idle connection stays; members report every few, and handshakes are dear


def serve(settings: Settings) -> None:
    """Runs until SIGTERM or SIGINT; raises a `HansaError` if it cannot start."""
    telemetry.set_up_logs(settings.log)
    bootstrap.data_folder.fix_umask()
    files = bootstrap.open_files.allow_most()
    if settings.role != "manager":
        bootstrap.memory.keep_large_apart()
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn_loop = uvicorn.Config("", loop="uvloop", log_config=None).get_loop_factory()
        with asyncio.Runner(loop_factory=uvicorn_loop) as runner:
            runner.run(_serve(settings, files))


class _Server(uvicorn.Server):
    """Leaves signals to `_until_told`: several servers of one process stop together, and the parts behind them
    afterwards, in order."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _until_told(
    servers: Sequence[tuple[_Server, Sequence[socket.socket]]], endings: Sequence[Callable[[], None]]
) -> None:
    """Serves until SIGTERM or SIGINT; then `endings` end answers that would go on for ever. The handlers stay: a
    second signal while the parts stop must not cut them short."""

    def stop(number: int) -> None:
        for end in endings:
            end()
        for server, _ in servers:
            server.handle_exit(number, None)

    loop = asyncio.get_running_loop()
    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, stop, one)
    async with asyncio.TaskGroup() as tasks:
        for server, sockets in servers:
            tasks.create_task(server.serve(list(sockets)))


class CannotServe(HansaError):
    """The manager cannot start where the settings say."""

    code, kind = "server.cannot-start", Kind.UNAVAILABLE


def _listening(asked: bootstrap.parts_here.Port) -> list[socket.socket]:
    """Bound before anything else starts, so that a taken port costs nothing; nobody gets in before `serve`."""
    bound: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(asked.host, asked.number, type=socket.SOCK_STREAM):
            bound.append(one := socket.socket(family, kind, protocol))
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind(address)
    except OSError as error:
        for one in bound:
            one.close()
        raise CannotServe(
            f"cannot listen on {asked.host} port {asked.number}: {error.strerror}", hint=asked.hint
        ) from None
    return bound


def _prepare(data: Path) -> None:
    try:
        bootstrap.data_folder.close(data)
        tempfile.TemporaryFile(dir=data).close()
    except OSError as error:
        raise CannotServe(
            f"the data folder {data} cannot be used: {error.strerror}",
            hint="set data to a folder this user may write to",
        ) from None


def _server(
    api: ASGIApp,
    tls: ssl.SSLContext | None = None,
    protocol: type[asyncio.Protocol] = Protocol,
    lifespan: Literal["auto", "off"] = "auto",
) -> _Server:
    config = uvicorn.Config(
        api,
        log_config=None,
        access_log=False,
        http=protocol,
        ws=TunnelProtocol,
        timeout_graceful_shutdown=_GRACE,
        timeout_keep_alive=_KEEP if tls is None else _KEEP_MEMBERS,
        ssl_context_factory=None if tls is None else lambda _config, _default: tls,
        server_header=False,
        lifespan=lifespan,
        proxy_headers=False,
    )
    return _Server(config)


async def _serve(settings: Settings, open_files: int) -> None:
    _prepare(settings.data)
    servers: list[tuple[_Server, Sequence[socket.socket]]] = []
    endings: list[Callable[[], None]] = []
    async with contextlib.AsyncExitStack() as parts:
        # ports first: a taken one costs nothing yet
        bound = {part.name: [_listening(port) for port in part.ports] for part in bootstrap.parts_here.of(settings)}
        manager, pages = [*bound.get("manager", []), [], []][:2]
        people, members = bound.get("hub", [[], []])
        if people:
            # a manager alone starts without these, and sooner
            from hansa.entrypoints.http.hub import app as hub_application  # noqa: PLC0415
            from hansa.entrypoints.http.hub.members_protocol import MembersProtocol  # noqa: PLC0415
            from hansa.entrypoints.http.hub.tls import MembersTls  # noqa: PLC0415

            hub = await parts.enter_async_context(bootstrap.opened_hub(settings))
            await parts.enter_async_context(hub_loops.running(hub))
            endings += [hub.hub.streams.close, hub.hub.waking.close]
            servers.append((_server(hub_application.for_people(hub)), people))
            for_members = hub_application.for_members(hub)
            servers.append((_server(for_members, MembersTls(hub.hub).context, MembersProtocol), members))
            _log.info("hub", host=settings.hub.host, port=_port(people), members_port=_port(members))
            _check_room(len(hub.hub.registry), open_files)
            bootstrap.memory.look_only_when_grown()
        if manager:
            await parts.enter_async_context(bootstrap.turn(settings, manager))
            app = await parts.enter_async_context(bootstrap.opened(settings))
            await parts.enter_async_context(loops.running(app))
            api = application.make(app)
            servers.append((_server(application.for_all(api)), manager))
            _log.info("manager", cluster=settings.cluster.id, host=settings.http.host, port=_port(manager))
            if pages:
                servers.append((_server(application.for_pages(api), lifespan="off"), pages))
                _log.info("tenants' pages", host=settings.http.host, port=_port(pages))
        await _until_told(servers, endings)
    _log.info("stopped", cluster=settings.cluster.id)


def _check_room(clusters: int, open_files: int) -> None:
    most = bootstrap.open_files.clusters_within(open_files)
    if clusters * _GROWTH > most:
        _log.warning(
            "few connections: clusters beyond them are turned away",
            clusters=clusters,
            enough_for=most,
            open_files=open_files,
            hint="raise the hard limit of open files (ulimit -Hn, or LimitNOFILE= in a systemd unit)",
        )


def _port(sockets: Sequence[socket.socket]) -> int:
    return int(sockets[0].getsockname()[1])
