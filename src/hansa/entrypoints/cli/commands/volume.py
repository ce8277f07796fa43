"""`hansa volume`: disks that outlive jobs."""

from typing import Annotated

import typer

from hansa.entrypoints.cli import confirmation, options, session
from hansa.entrypoints.cli.client import document, segment, sequence
from hansa.entrypoints.cli.screen import Screen
from hansa.kernel import quantities

app = typer.Typer(help="Volumes: list, create, remove.", no_args_is_help=True)
VolumeName = Annotated[str, typer.Argument(metavar="VOLUME", help="The volume's name.")]


@app.command("ls")
def list_volumes(cluster: options.Cluster = None, as_json: options.Json = False) -> None:
    """List your volumes."""
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        volumes = sequence(manager.read("/system/volumes", what="support for volumes"), manager.name)
    screen.data(volumes)
    columns = list(dict.fromkeys(key for v in volumes for key, value in v.items() if not isinstance(value, dict)))
    screen.table(
        [column.replace("_", " ") for column in columns],
        [[volume.get(column) for column in columns] for volume in volumes],
        empty="no volumes",
    )


@app.command()
def create(
    volume: VolumeName,
    size: Annotated[str, typer.Option("--size", "-s", help="How large, such as 1Gi.")],
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Make a volume."""
    quantities.size(size, what="--size")
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        body = {"name": volume, "size": size}
        answer = manager.call("POST", "/system/volumes", body=body, what="support for volumes", timeout=60)
        made = document(answer, manager.name) if answer.content else body
    screen.data(made)
    screen.line(f"created volume {volume} ({size})")


@app.command("rm")
def remove(
    volume: VolumeName,
    yes: options.Yes = False,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Remove a volume with everything on it."""
    screen = Screen(as_json=as_json)
    confirmation.require(f"remove volume {volume} with everything on it?", yes=yes)
    with session.opened(cluster) as manager:
        manager.call("DELETE", f"/system/volumes/{segment(volume)}", what=f"volume {volume}", timeout=60)
    screen.data({"volume": volume, "action": "removed"})
    screen.line(f"removed volume {volume}")
