"""`hansa cluster join`, `leave` and `membership`: a manager's own place in a federation. They ask the manager."""

import sys
import time
from collections.abc import Callable
from typing import Annotated, TypeVar

import msgspec
import typer

from hansa.entrypoints.cli import confirmation, hub_session, moments, options, session
from hansa.entrypoints.cli.client import Manager, Unexpected
from hansa.entrypoints.cli.commands.cluster.reading import LINK_COLUMNS, link_row
from hansa.entrypoints.cli.screen import Screen
from hansa.kernel import errors
from hansa.messages.clusters import Cluster, NewToken, Token
from hansa.messages.membership import JoinHub, Membership

_PATH = "/v1/membership"
_SLOW = 60.0  # the manager asks the hub meanwhile
_MINUTES = 5.0  # a token that is used at once
_EVERY = 0.5
T = TypeVar("T", Cluster, Membership)


def join(
    address: Annotated[
        str | None, typer.Argument(metavar="HUB", help="Where managers reach the hub, https://host:7443.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            help="What `cluster token create` gave; - reads it from stdin. Without, one is made at the hub in use.",
        ),
    ] = None,
    hub: options.Hub = None,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Let this cluster join a federation: with a token, or as admin of both."""
    if token is not None and address is None:
        raise typer.BadParameter("say which hub the token is of", param_hint="HUB")
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager, screen.waiting("joining"):
        if token is None:
            made = _made_token(hub, _ask(manager, "GET").cluster)
            token, address = made.token, address or made.hub
        if not address:
            raise typer.BadParameter("the hub does not tell where managers reach it", param_hint="HUB")
        found = _ask(manager, "POST", JoinHub(hub=session.checked_url(address), token=_given(token)))
    _print(screen, found)


def _made_token(hub: str | None, cluster: str) -> Token:
    with hub_session.opened(hub) as opened:
        return opened.create_token(NewToken(cluster=cluster, minutes=_MINUTES))


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
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Wait until it has left.")] = False,
    timeout: Annotated[float, typer.Option("--timeout", min=1, help="With --wait: seconds until we give up.")] = 600.0,
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
            if wait:
                one = _until(lambda: opened.cluster(member), lambda seen: seen.state == "left", timeout, screen)
        screen.data(msgspec.to_builtins(one))
        screen.line(f"{one.id} has left" if one.state == "left" else f"{one.id} is to leave when its work is done")
        return
    with session.opened(cluster) as manager:
        confirmation.require(f"shall {manager.name} leave its federation?", yes=yes)
        found = _ask(manager, "DELETE", force=force)
        if wait:
            found = _until(lambda: _ask(manager, "GET"), lambda seen: seen.state != "leaving", timeout, screen)
    _print(screen, found)


def _until(look: Callable[[], T], is_so: Callable[[T], bool], timeout: float, screen: Screen) -> T:
    """What is seen when it has left; both clusters and memberships tell why they have not."""
    end = time.monotonic() + timeout
    with screen.waiting("leaving") as bar:
        while not is_so(seen := look()):
            bar.title(f"leaving: {seen.reason}")
            if time.monotonic() > end:
                raise errors.Temporary(f"it has not left after {timeout:g} s: {seen.reason}", hint="it goes on")
            time.sleep(_EVERY)
    return seen


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
