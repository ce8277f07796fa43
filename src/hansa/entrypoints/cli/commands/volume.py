"""`hansa volume`: disks that outlive jobs."""

from typing import Annotated, Any

import typer

from hansa.entrypoints.cli import confirmation, options, session
from hansa.entrypoints.cli.client import document, segment, sequence
from hansa.entrypoints.cli.screen import Screen
from hansa.kernel import errors, quantities

app = typer.Typer(help="Volumes: list, create, remove.", no_args_is_help=True)
VolumeName = Annotated[str, typer.Argument(metavar="VOLUME", help="The volume's name.")]


@app.command("ls")
def list_volumes(cluster: options.Cluster = None, as_json: options.Json = False) -> None:
    """List your volumes."""
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        volumes = sequence(manager.read("/system/volumes", what="support for volumes"), manager.name)
    screen.data(volumes)
    rows = [_row(volume) for volume in volumes]
    columns = list(dict.fromkeys(key for row in rows for key in row))
    screen.table(
        [column.replace("_", " ") for column in columns],
        [[row.get(column) for column in columns] for row in rows],
        empty="no volumes",
    )


def _row(volume: dict[str, Any]) -> dict[str, Any]:
    """How it is stands last, with the reason if it is not as it should be."""
    status = volume.get("status")
    shown = {key: _words(value) for key, value in volume.items() if not isinstance(value, dict)}
    told = status if isinstance(status, dict) else {}
    return shown | {key: told[key] for key in ("phase", "reason") if key in told}


def _words(value: Any) -> Any:
    """Attachments are told as `service:/path`."""
    if not isinstance(value, list):
        return value
    return [f"{one.get('service_name')}:{one.get('mount_path')}" if isinstance(one, dict) else one for one in value]


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
        try:
            manager.call("DELETE", f"/system/volumes/{segment(volume)}", what=f"volume {volume}", timeout=60)
        except errors.NotFound as error:
            error.hint = "list yours with: hansa volume ls"
            raise
    screen.data({"volume": volume, "action": "removed"})
    screen.line(f"removed volume {volume}")
