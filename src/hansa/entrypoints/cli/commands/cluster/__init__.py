"""`hansa cluster`: the clusters of a federation, as its hub knows them, and how they get in and out.

`reading` shows them, `acting` changes what is wanted of them, `registering` what is known of them, `addresses` where
others reach them, `joining` speaks to a manager about its own place, `tokens` is about who may join.
"""

import typer

from hansa.entrypoints.cli.commands.cluster import acting, addresses, joining, reading, registering, tokens

app = typer.Typer(help="Clusters of the federation: list, join, drain, remove.", no_args_is_help=True)
for _module in (reading, joining, acting, registering):
    _module.register(app)
app.add_typer(addresses.app, name="address")
app.add_typer(tokens.app, name="token")
