"""`hansa top`: the federation as it changes. A moving picture on a terminal, a line for each change anywhere else."""

import signal
import threading
import time
from contextlib import closing
from typing import Annotated

import msgspec
import typer
from rich.console import Console, Group
from rich.live import Live

from hansa.client import HubClient, Picture, errors
from hansa.entrypoints.cli import hub_session, live_view, options
from hansa.entrypoints.cli.commands.cluster.reading import Selector, warn_of_age
from hansa.entrypoints.cli.screen import Screen
from hansa.messages.inventory import Change, ClusterInventory, Inventory, InventoryEvent, Removed

_A_SECOND = 4  # pictures
_AGAIN = 2.0  # seconds after which a hub that went away is asked again


def top(
    selector: Selector = "",
    once: Annotated[bool, typer.Option("--once", help="Show it once and end.")] = False,
    hub: options.Hub = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document for each event, a line each.")
    ] = False,
) -> None:
    """Watch the clusters of the federation: their state, what they use, what happens."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        if once:
            _once(opened, selector, screen)
            return
        try:
            if (console := screen.live) is not None:
                _Moving(opened, selector).run(console)
            else:
                _lines(opened, selector, screen)
        except KeyboardInterrupt:
            pass  # how people end it


def _once(hub: HubClient, selector: str, screen: Screen) -> None:
    found = hub.inventory(selector=selector)
    screen.record(msgspec.to_builtins(found))
    _table(screen, found)
    warn_of_age(screen, found.age)


def _table(screen: Screen, found: Inventory) -> None:
    picture = Picture()
    picture.apply(found)
    screen.line(live_view.summary(picture).plain)
    now = time.time()
    screen.table(
        live_view.COLUMNS,
        [live_view.row(one, now) for one in live_view.in_order(found.clusters)],
        empty="no clusters",
    )


def _lines(hub: HubClient, selector: str, screen: Screen) -> None:
    with closing(hub.watch_inventory(selector=selector)) as events:
        for event in events:
            screen.record({"event": _KINDS[type(event)], "data": msgspec.to_builtins(event)})
            if isinstance(event, Inventory):
                _table(screen, event)
            else:
                screen.line(_line(event))


_KINDS = {Inventory: "snapshot", ClusterInventory: "cluster", Removed: "removed", Change: "change"}


def _line(event: InventoryEvent) -> str:
    match event:
        case ClusterInventory():
            _, state, _, nodes, cpu, memory, *_ = live_view.row(event, time.time())
            return f"{event.id}  {state}  nodes {nodes}  cpu {cpu}  memory {memory}"
        case Removed():
            return f"{event.id}  is gone"
        case Change():
            return live_view.change_line(event)
    return ""


class _Moving:
    """Events come in on a thread, the terminal is drawn by one of its own, so that times move on without events; the
    main one waits for Ctrl-C. It is only noted there: raised wherever the program happens to be, it can get lost."""

    def __init__(self, hub: HubClient, selector: str) -> None:
        self._hub, self._selector = hub, selector
        self._picture, self._trouble = Picture(), ""
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._failure: BaseException | None = None

    def run(self, console: Console) -> None:
        following = threading.Thread(target=self._keep_following, name="follow the hub", daemon=True)
        former = signal.signal(signal.SIGINT, lambda *_: self._over.set())
        try:
            with Live(
                get_renderable=lambda: self._drawn(console), console=console, refresh_per_second=_A_SECOND, screen=True
            ):
                following.start()
                self._over.wait()
        finally:
            signal.signal(signal.SIGINT, former)
        if self._failure is not None:
            raise self._failure

    def _keep_following(self) -> None:
        try:
            while not self._over.is_set():
                self._follow_for_a_while()
        except BaseException as error:  # whatever it is, people are told on the main thread
            self._failure = error
        self._over.set()

    def _follow_for_a_while(self) -> None:
        try:
            self._follow()
        except errors.HubError as error:
            if not self._picture.complete or (isinstance(error, errors.Refused) and error.status < 500):
                raise
            with self._lock:
                self._trouble = f"{error.message}; what you see is from before"
            self._over.wait(_AGAIN)

    def _follow(self) -> None:
        with closing(self._hub.watch_inventory(selector=self._selector)) as events:
            for event in events:
                with self._lock:
                    self._picture.apply(event)
                    self._trouble = ""

    def _drawn(self, console: Console) -> Group:
        with self._lock:
            return live_view.drawn(
                self._picture, hub=self._hub.url, now=time.time(), height=console.height, trouble=self._trouble
            )


def register(app: typer.Typer) -> None:
    app.command()(top)
