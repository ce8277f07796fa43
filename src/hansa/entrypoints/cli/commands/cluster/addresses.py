"""`hansa cluster address`: where other clusters reach one, which only an admin changes."""

from collections.abc import Callable
from typing import Annotated

import msgspec
import typer

from hansa.client import HubClient
from hansa.entrypoints.cli import confirmation, hub_session, options, session
from hansa.entrypoints.cli.screen import Screen
from hansa.kernel import errors
from hansa.messages.clusters import Address, AskedAddress, Cluster

app = typer.Typer(help="Where other clusters reach a cluster.", no_args_is_help=True)
Asked = Annotated[
    str | None,
    typer.Argument(metavar="URL", help="The address it asks for; without, it is shown and you are asked."),
]


@app.command("set")
def put(
    cluster: options.Member,
    endpoint: Annotated[str, typer.Argument(metavar="URL", help="Where it is, such as https://lubeck.example.org.")],
    insecure: Annotated[bool, typer.Option("--insecure", help="Its certificate there need not be checked.")] = False,
    hub: options.Hub = None,
    as_json: options.Json = False,
) -> None:
    """Say where a cluster is; all others are told."""
    with hub_session.opened(hub) as opened:
        one = opened.change_address(cluster, Address(endpoint=session.checked_url(endpoint), verify=not insecure))
    _print(one, as_json)


@app.command()
def approve(
    cluster: options.Member,
    endpoint: Asked = None,
    yes: options.Yes = False,
    hub: options.Hub = None,
    as_json: options.Json = False,
) -> None:
    """Grant a cluster the address it asks for; all others are told."""
    _print(_decided(cluster, endpoint, hub, "shall others reach", yes, lambda to: to.approve_address), as_json)


@app.command()
def refuse(
    cluster: options.Member,
    endpoint: Asked = None,
    yes: options.Yes = False,
    hub: options.Hub = None,
    as_json: options.Json = False,
) -> None:
    """Let a cluster stay where it is; it is not told again that it asks for this address."""
    _print(_decided(cluster, endpoint, hub, "shall nobody reach", yes, lambda to: to.refuse_address), as_json)


def _decided(
    cluster: str,
    endpoint: str | None,
    hub: str | None,
    question: str,
    yes: bool,
    decision: Callable[[HubClient], Callable[[str, AskedAddress], Cluster]],
) -> Cluster:
    """What is decided about is always named, so that nothing else can take its place meanwhile."""
    with hub_session.opened(hub) as opened:
        if endpoint is None:
            now = opened.cluster(cluster)
            if not now.asks_for:
                raise errors.Conflict(
                    f"cluster {cluster} asks for no other address", hint=f"hansa cluster show {cluster}"
                )
            endpoint = now.asks_for
            instead = f" instead of {now.facts.endpoint}" if now.facts.endpoint else ""
            confirmation.require(f"{question} {cluster} at {endpoint}{instead}?", yes=yes)
        return decision(opened)(cluster, AskedAddress(endpoint=endpoint))


def _print(one: Cluster, as_json: bool) -> None:
    screen = Screen(as_json=as_json)
    screen.data(msgspec.to_builtins(one))
    where = one.facts.endpoint or "nowhere"
    screen.line(
        f"others reach {one.id} at {where}" + ("" if one.facts.verify else ", without checking its certificate")
    )
