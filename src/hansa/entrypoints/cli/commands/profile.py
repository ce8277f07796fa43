"""`hansa profile`: the clusters and hubs known here."""

import os

import typer

from hansa.entrypoints.cli import options, profile_files
from hansa.entrypoints.cli.screen import Screen

app = typer.Typer(help="The clusters and hubs known here.", no_args_is_help=True)


@app.command("ls")
def list_profiles(as_json: options.Json = False) -> None:
    """List the known clusters and hubs."""
    stored = profile_files.known(os.environ)
    rows = [
        {
            "name": p.name,
            "url": p.url,
            "role": p.role,
            "sign_in": p.sign_in,
            "verify": p.verify,
            "current": p.name in (stored.current, stored.hub),
        }
        for p in stored.known.values()
    ]
    screen = Screen(as_json=as_json)
    screen.data(rows)
    screen.table(
        ["", "name", "role", "url", "sign-in"],
        [("*" if row["current"] else "", row["name"], row["role"], row["url"], row["sign_in"]) for row in rows],
        empty="no cluster is known here yet; sign in with: hansa login URL",
    )


@app.command()
def use(name: options.Known, as_json: options.Json = False) -> None:
    """Speak to this cluster, or this hub, from now on."""
    profile_files.use(os.environ, name)
    screen = Screen(as_json=as_json)
    screen.data({"current": name})
    screen.line(f"using {name}")


@app.command("rm")
def remove(name: options.Known, as_json: options.Json = False) -> None:
    """Forget a cluster or a hub and its credentials."""
    profile_files.forget(os.environ, name)
    screen = Screen(as_json=as_json)
    screen.data({"removed": name})
    screen.line(f"forgot {name}")
