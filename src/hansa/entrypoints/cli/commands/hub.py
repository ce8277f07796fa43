"""`hansa hub`: the hub itself, the roots its members trust, and how it is saved."""

from typing import Annotated

import msgspec
import typer

from hansa.entrypoints.cli import confirmation, hub_session, moments, options
from hansa.entrypoints.cli.commands import hub_saving
from hansa.entrypoints.cli.screen import Screen
from hansa.messages.trust import AuthorityState

app = typer.Typer(help="The hub itself: its roots of trust, and how it is saved.", no_args_is_help=True)
hub_saving.register(app)


@app.command()
def roots(hub: options.Hub = None, as_json: options.Json = False) -> None:
    """List the roots of trust, and how many clusters hold certificates of each."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        found = opened.authority()
    _print(screen, found)


@app.command("rotate-root")
def rotate_root(hub: options.Hub = None, as_json: options.Json = False) -> None:
    """Introduce a new root of trust; it replaces the active one by itself once all clusters know it."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        found = opened.rotate_root()
    _print(screen, found)
    screen.note("the new root signs as soon as all clusters know it; follow it with: hansa hub roots")


@app.command("drop-root")
def drop_root(
    root: Annotated[str, typer.Argument(metavar="ROOT", help="Its id, from `hub roots`.")],
    yes: options.Yes = False,
    hub: options.Hub = None,
    as_json: options.Json = False,
) -> None:
    """Stop trusting a retiring root at once, as after the theft of its key."""
    screen = Screen(as_json=as_json)
    confirmation.require(f"stop trusting root {root}? clusters that hold certificates of it must join again", yes=yes)
    with hub_session.opened(hub) as opened:
        found = opened.drop_root(root)
    _print(screen, found)


def _print(screen: Screen, found: AuthorityState) -> None:
    screen.data(msgspec.to_builtins(found))
    screen.facts([("trust domain", found.trust_domain)])
    screen.table(
        ["root", "state", "since", "expires", "clusters", "fingerprint"],
        [
            (one.id, one.state, moments.moment(one.since), moments.moment(one.until), one.holders, one.fingerprint)
            for one in found.roots
        ],
    )
