"""`hansa cluster approve`, `cordon`, `uncordon`, `drain` and `remove`: what is wanted of a cluster."""

import time
from collections.abc import Callable
from typing import Annotated

import msgspec
import typer

from hansa.client import HubClient
from hansa.entrypoints.cli import confirmation, hub_session, options
from hansa.entrypoints.cli.screen import Screen
from hansa.kernel import errors
from hansa.messages.clusters import Cluster

_EVERY = 0.5


def approve(cluster: options.Member, hub: options.Hub = None, as_json: options.Json = False) -> None:
    """Let in a cluster that waits for it, at the address that `cluster show` tells of it."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        one = opened.approve(cluster)
    screen.data(msgspec.to_builtins(one))
    where = one.facts.endpoint
    screen.line(f"{one.id} is let in" + (f"; others reach it at {where}" if where else ""))


def cordon(cluster: options.Member, hub: options.Hub = None, as_json: options.Json = False) -> None:
    """Place nothing new in a cluster; what runs there goes on."""
    _do(lambda opened: opened.cordon(cluster), "cordoned: it gets nothing new", hub, as_json)


def uncordon(cluster: options.Member, hub: options.Hub = None, as_json: options.Json = False) -> None:
    """Take a cordon, or a drain, back."""
    _do(lambda opened: opened.uncordon(cluster), "open again", hub, as_json)


def drain(
    cluster: options.Member,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until nothing of it runs any more.")] = False,
    timeout: Annotated[float, typer.Option("--timeout", min=1, help="With --wait: seconds until we give up.")] = 600.0,
    hub: options.Hub = None,
    as_json: options.Json = False,
) -> None:
    """Let a cluster finish, or hand on, its work; it takes no new."""
    if not wait:
        _do(lambda opened: opened.drain(cluster), "to be drained", hub, as_json)
        return
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened, screen.waiting(f"draining {cluster}") as bar:
        opened.drain(cluster)
        end = time.monotonic() + timeout
        while not _is_drained(found := opened.cluster_status(cluster).sections):
            one = opened.cluster(cluster)
            bar.title(f"draining {cluster}: {one.reason}")
            if not one.cordoned or one.state in ("leaving", "left"):  # its state itself follows a little later
                raise errors.Conflict(f"cluster {cluster} is {one.state}; somebody stopped the drain: {one.reason}")
            if time.monotonic() > end:
                raise errors.Temporary(
                    f"cluster {cluster} is not drained after {timeout:g} s: {one.reason}",
                    hint=f"it goes on; see it with: hansa cluster show {cluster}",
                )
            time.sleep(_EVERY)
    screen.data({"cluster": cluster, "drained": True, "applied": found["applied"]})
    screen.line(f"{cluster} is drained: nothing of it runs any more")


def remove(
    cluster: options.Member,
    force: Annotated[bool, typer.Option("--force", help="Also one that is still there.")] = False,
    yes: options.Yes = False,
    hub: options.Hub = None,
    as_json: options.Json = False,
) -> None:
    """Remove a cluster that left, or that is lost; nothing of it stays at the hub."""
    screen = Screen(as_json=as_json)
    confirmation.require(f"remove cluster {cluster} from the federation?", yes=yes)
    with hub_session.opened(hub) as opened:
        opened.remove_cluster(cluster, force=force)
    screen.data({"cluster": cluster, "action": "removed"})
    screen.line(f"removed {cluster} from the federation")


def _is_drained(sections: dict[str, object]) -> bool:
    applied = sections.get("applied")
    return isinstance(applied, dict) and applied.get("drained") is True


def _do(action: Callable[[HubClient], Cluster], done: str, hub: str | None, as_json: bool) -> None:
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        one = action(opened)
    screen.data(msgspec.to_builtins(one))
    screen.line(f"{one.id} is {done}")


def register(app: typer.Typer) -> None:
    for command in (approve, cordon, uncordon, drain, remove):
        app.command()(command)
