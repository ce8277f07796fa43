"""`hansa config`: what managers are told to do otherwise than their own files say; alone, how one cluster is set up.

`cluster` shows one cluster's own configuration, `reading` the documents of the hub, `writing` changes them,
`rolling` is about how a version spreads.
"""

import typer

from hansa.entrypoints.cli.commands.config import cluster, reading, rolling, writing

app = typer.Typer(
    help="Configuration of the federation's clusters; without a command, the configuration of one cluster.",
    invoke_without_command=True,
)
for _module in (cluster, reading, writing, rolling):
    _module.register(app)
