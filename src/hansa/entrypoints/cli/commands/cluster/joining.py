"""`hansa cluster join`, `leave` and `membership`: a manager's own place in a federation. They ask the manager."""

import sys
import time
from typing import Annotated

import msgspec
import typer

from hansa.entrypoints.cli import confirmation, hub_session, moments, options, session
from hansa.entrypoints.cli.client import Manager, Unexpected
from hansa.entrypoints.cli.commands.cluster.reading import LINK_COLUMNS, link_row, state
from hansa.entrypoints.cli.screen import Screen
from hansa.messages.membership import JoinHub, Membership

_PATH = "/v1/membership"
_SLOW = 60.0  # the manager asks the hub meanwhile


def join(
    address: Annotated[str, typer.Argument(metavar="HUB", help="Where managers reach the hub, https://host:7443.")],
    token: Annotated[str, typer.Option("--token", help="What `cluster token create` gave; - reads it from stdin.")],
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Let this cluster join a federation."""
    screen = Screen(as_json=as_json)
    said = JoinHub(hub=session.checked_url(address), token=_given(token))
    with session.opened(cluster) as manager, screen.waiting("joining"):
        found = _ask(manager, "POST", said)
    _print(screen, found)


def membership(cluster: options.Cluster = None, as_json: options.Json = False) -> None:
    """Show a cluster's place in its federation, as its manager sees it."""
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        found = _ask(manager, "GET")
    _print(screen, found)
    if found.links:
        screen.table(LINK_COLUMNS, [link_row(one) for one in found.links])


def leave(
    member: Annotated[
        str | None, typer.Argument(metavar="CLUSTER", help="Ask the hub to let it go; without, the manager leaves.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="The manager forgets its hub at once, whatever runs or answers.")
    ] = False,
    yes: options.Yes = False,
    hub: options.Hub = None,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Leave the federation: the cluster finishes its work first, and goes on by itself."""
    if member is not None and (force or cluster is not None):
        raise typer.BadParameter("--force and --cluster are for a manager that leaves by itself", param_hint="CLUSTER")
    screen = Screen(as_json=as_json)
    if member is not None:
        with hub_session.opened(hub) as opened:
            one = opened.leave(member)
        screen.data(msgspec.to_builtins(one))
        screen.line(f"{one.id} is {state(one)}: {one.reason}")
        return
    with session.opened(cluster) as manager:
        confirmation.require(f"shall {manager.name} leave its federation?", yes=yes)
        found = _ask(manager, "DELETE", force=force)
    _print(screen, found)


def _given(value: str) -> str:
    return sys.stdin.readline().strip() if value == "-" else value


def _ask(manager: Manager, method: str, said: JoinHub | None = None, *, force: bool = False) -> Membership:
    answer = manager.call(
        method,
        _PATH,
        what="place in a federation",
        body=None if said is None else msgspec.to_builtins(said),
        params={"force": "true"} if force else None,
        timeout=_SLOW,
    )
    try:
        return msgspec.json.decode(answer.content, type=Membership)
    except msgspec.DecodeError as error:
        raise Unexpected(f"{manager.name} said of its membership what cannot be read: {error}") from None


def _print(screen: Screen, found: Membership) -> None:
    screen.data(msgspec.to_builtins(found))
    screen.facts(
        [
            ("cluster", found.cluster),
            ("standing", found.state),
            ("why", found.reason),
            ("since", moments.moment(found.since)),
            ("hub", found.hub),
            ("seen as", found.seen_as),
            ("hub answered", moments.ago(found.answered, time.time()) if found.hub else ""),
            ("trouble", found.trouble),
            ("certificate until", moments.moment(found.certificate_until)),
            ("cordoned", "yes" if found.cordoned else ""),
            ("draining", f"{found.running} jobs run, {found.waiting} wait" if found.draining else ""),
            ("configuration", ", ".join(f"{one.name} v{one.version}" for one in found.documents)),
            ("not taken", found.error),
            ("reports kept", found.reports_waiting or ""),
            ("reports dropped", found.reports_dropped or ""),
            ("hint", found.hint),
        ]
    )


def register(app: typer.Typer) -> None:
    for command in (join, membership, leave):
        app.command()(command)
