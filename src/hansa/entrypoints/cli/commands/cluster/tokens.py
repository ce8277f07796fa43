"""`hansa cluster token`: who may join the federation."""

import time
from typing import Annotated

import msgspec
import typer

from hansa.entrypoints.cli import hub_session, moments, options
from hansa.entrypoints.cli.screen import Screen
from hansa.messages.clusters import NewToken, Token

app = typer.Typer(help="Tokens with which clusters join.", no_args_is_help=True)


@app.command()
def create(
    cluster: Annotated[str, typer.Option("--cluster", metavar="ID", help="Only this cluster may use it.")] = "",
    minutes: Annotated[float, typer.Option("--minutes", min=0.1, help="How long it is good.")] = 60.0,
    approve: Annotated[
        bool, typer.Option(help="Whether who shows it is a member at once, or waits for `cluster approve`.")
    ] = True,
    endpoint: Annotated[
        str, typer.Option("--endpoint", metavar="URL", help="Where others will reach it, whatever it says itself.")
    ] = "",
    hub: options.Hub = None,
    as_json: options.Json = False,
) -> None:
    """Make a token with which one cluster may join; it is shown this once."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        made = opened.create_token(NewToken(cluster=cluster, approve=approve, minutes=minutes, endpoint=endpoint))
    screen.data(msgspec.to_builtins(made))
    screen.line(made.token)
    whom = f"cluster {made.cluster}" if made.cluster else "one cluster"
    whom += f" at {made.endpoint}" if made.endpoint else ""
    screen.note(f"for {whom}, until {moments.moment(made.expires)}; at that cluster:")
    # without the token itself, which is on stdout: who takes it from there may well keep stderr in a log
    screen.note(f"  hansa cluster join {made.hub or 'https://HUB:7443'} --token TOKEN")


@app.command("ls")
def list_tokens(hub: options.Hub = None, as_json: options.Json = False) -> None:
    """List the tokens and who used them; never what is secret of them."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        found = opened.tokens()
    screen.data(msgspec.to_builtins(found))
    screen.table(
        ["token", "for", "approved", "state", "used by"],
        [(one.id, one.cluster or "any", one.approve, _state(one, time.time()), one.used_by) for one in found],
        empty="no tokens; make one with: hansa cluster token create",
    )


def _state(one: Token, now: float) -> str:
    if one.used is not None:
        return f"used {moments.moment(one.used)}"
    return f"until {moments.moment(one.expires)}" if one.expires > now else "its time is over"


@app.command()
def revoke(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="The token's id, from `cluster token ls`.")],
    hub: options.Hub = None,
    as_json: options.Json = False,
) -> None:
    """Let nobody join with a token any more; who joined stays."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        opened.revoke_token(token)
    screen.data({"token": token, "action": "revoked"})
    screen.line(f"revoked token {token}")
