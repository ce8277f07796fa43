"""`hansa config` alone: how one cluster is set up, as its manager tells its users."""

import typer

from hansa.entrypoints.cli import options, secrets, session
from hansa.entrypoints.cli.client import mapping
from hansa.entrypoints.cli.commands.service import as_yaml
from hansa.entrypoints.cli.screen import Screen


def config(
    context: typer.Context,
    with_secrets: options.Secrets = False,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Show a cluster's configuration and storage; or, with a command, what the hub tells all of them."""
    if context.invoked_subcommand is not None:
        return
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        found = mapping(manager.read("/system/config"), manager.name)
    shown = found if with_secrets else secrets.hide(found)
    screen.data(shown)
    screen.block(as_yaml(shown))


def register(app: typer.Typer) -> None:
    app.callback()(config)
