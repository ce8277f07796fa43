"""`hansa config rollout`, `pause`, `resume`, `stop` and `roll-back`: how a version spreads."""

import time
from collections.abc import Callable
from typing import Annotated

import msgspec
import typer

from hansa.client import HubClient
from hansa.entrypoints.cli import exits, hub_session, options
from hansa.entrypoints.cli.commands.config.reading import Name, print_clusters, print_state, rollout_facts
from hansa.entrypoints.cli.screen import Screen
from hansa.kernel import errors
from hansa.messages.configuration import RollBack, Rollout

_EVERY = 0.5
_GOING = frozenset({"running", "soaking"})
Follow = Annotated[bool, typer.Option("--wait", "-w", help="Wait until it has ended; it fails if it was stopped.")]
Timeout = Annotated[float, typer.Option("--timeout", min=1, help="With --wait: seconds until we give up.")]


def rollout(
    name: Name,
    wait: Follow = False,
    timeout: Timeout = 3600.0,
    hub: options.Hub = None,
    as_json: options.Json = False,
) -> None:
    """Show how the newest version of a document spreads."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        found = followed(opened, name, screen, timeout) if wait else opened.rollout(name)
    _print(screen, found)
    if wait:
        raise typer.Exit(ended(found))


def pause(name: Name, hub: options.Hub = None, as_json: options.Json = False) -> None:
    """Give the new version to nobody else until it is resumed."""
    _do(lambda opened: opened.pause_rollout(name), hub, as_json)


def resume(name: Name, hub: options.Hub = None, as_json: options.Json = False) -> None:
    """Go on with a rollout that was paused or has stopped; clusters that failed try once more."""
    _do(lambda opened: opened.resume_rollout(name), hub, as_json)


def stop(name: Name, hub: options.Hub = None, as_json: options.Json = False) -> None:
    """End a rollout where it is: every cluster keeps the version it has."""
    _do(lambda opened: opened.stop_rollout(name), hub, as_json)


def roll_back(
    name: Name,
    version: Annotated[int, typer.Argument(metavar="VERSION", help="What it said in this version.")],
    comment: Annotated[str, typer.Option("--comment", "-m", help="Why, for the history.")] = "",
    hub: options.Hub = None,
    as_json: options.Json = False,
) -> None:
    """Go back to what a document said in an older version, everywhere at once."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        found = opened.roll_back(name, RollBack(version=version, comment=comment))
    print_state(screen, found)


def followed(hub: HubClient, name: str, screen: Screen, timeout: float) -> Rollout:
    """The rollout when it has ended, was stopped or paused."""
    end = time.monotonic() + timeout
    with screen.waiting(f"rollout of {name}") as bar:
        while (found := hub.rollout(name)).state in _GOING:
            bar.title(f"rollout of {name}: stage {found.stage} of {found.stages}, {found.reason}")
            if time.monotonic() > end:
                raise errors.Temporary(
                    f"the rollout of {name} has not ended after {timeout:g} s: {found.reason}",
                    hint=f"it goes on; see it with: hansa config rollout {name}",
                )
            time.sleep(_EVERY)
    return found


def ended(found: Rollout) -> exits.Exit:
    return exits.Exit.OK if found.state == "done" else exits.Exit.FAILED


def _do(action: Callable[[HubClient], Rollout], hub: str | None, as_json: bool) -> None:
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        found = action(opened)
    _print(screen, found)


def _print(screen: Screen, found: Rollout) -> None:
    screen.data(msgspec.to_builtins(found))
    screen.facts([("document", found.document), *rollout_facts(found)])
    print_clusters(screen, found.clusters)


def register(app: typer.Typer) -> None:
    for command in (rollout, pause, resume, stop):
        app.command()(command)
    app.command("roll-back")(roll_back)
