"""`hansa quota`: how much a user may use, and does."""

from typing import Annotated, Any

import typer

from hansa.entrypoints.cli import options, session
from hansa.entrypoints.cli.client import document, mapping, segment
from hansa.entrypoints.cli.screen import Screen
from hansa.kernel import quantities

app = typer.Typer(help="Quotas: show and set.", no_args_is_help=True)
_WHAT = "quota support"


@app.command()
def show(
    user: Annotated[str | None, typer.Argument(metavar="USER", help="Whose; without, your own.")] = None,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Show a user's quota and use."""
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        if user is None and manager.basic:
            raise typer.BadParameter("the admin has no quota; name a user", param_hint="USER")
        path = "/system/quotas/user" + (f"/{segment(user)}" if user else "")
        found = mapping(manager.read(path, what=_WHAT), manager.name)
    _print(screen, found)


@app.command("set")
def change(
    user: Annotated[str, typer.Argument(metavar="USER", help="Whose quota.")],
    *,
    cpu: Annotated[str | None, typer.Option("--cpu", help="Cores, such as 4 or 500m.")] = None,
    memory: Annotated[str | None, typer.Option("--memory", help="Such as 8Gi.")] = None,
    ephemeral: Annotated[str | None, typer.Option("--ephemeral-storage", help="Scratch space, such as 10Gi.")] = None,
    gpu: Annotated[int | None, typer.Option("--gpu", min=0, help="Number of GPUs.")] = None,
    disk: Annotated[str | None, typer.Option("--disk", help="All volumes together, such as 20Gi.")] = None,
    volumes: Annotated[int | None, typer.Option("--volumes", min=0, help="Number of volumes.")] = None,
    largest: Annotated[str | None, typer.Option("--max-disk-per-volume", help="Such as 5Gi.")] = None,
    smallest: Annotated[str | None, typer.Option("--min-disk-per-volume", help="Such as 200Mi.")] = None,
    buckets: Annotated[int | None, typer.Option("--buckets", min=0, help="Number of buckets.")] = None,
    bucket_size: Annotated[str | None, typer.Option("--storage-per-bucket", help="Such as 5Gi.")] = None,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Set parts of a user's quota; what is not given stays."""
    body = _given(cpu=cpu, memory=memory, ephemeral_storage=ephemeral, gpu=gpu)
    of_volumes = _given(disk=disk, volumes=volumes, max_disk_per_volume=largest, min_disk_per_volume=smallest)
    of_buckets = _given(buckets=buckets, storage_per_bucket=bucket_size)
    if of_volumes:
        body["volumes"] = of_volumes
    if of_buckets:
        body["minio"] = of_buckets
    if not body:
        raise typer.BadParameter("give at least one limit, such as --cpu 4", param_hint="--cpu")
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        answer = manager.call("PUT", f"/system/quotas/user/{segment(user)}", body=body, what=_WHAT)
        found = mapping(document(answer, manager.name), manager.name)
    for note in answer.headers.get_list("x-hansa-warning"):
        screen.warn(note[:1000])
    _print(screen, found)


def _given(**values: str | int | None) -> dict[str, Any]:
    """The wire wants every figure as a text."""
    return {name: str(value) for name, value in values.items() if value is not None}


def _print(screen: Screen, found: dict[str, Any]) -> None:
    screen.data(found)
    screen.facts([("user", found.get("user_id")), ("queue", found.get("cluster_queue"))])
    screen.table(["what", "used", "limit"], rows(found), empty="no limits are set")


def rows(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Used and allowed, in the units people write."""
    listed = []
    for group, show_figure in (("resources", _figure), ("volumes", _as_is), ("minio", _as_is)):
        for name, value in (found.get(group) or {}).items():
            label = name if group == "resources" else f"{group}: {name}"
            pair = value if isinstance(value, dict) else {"max": value}
            listed.append(
                (
                    label.replace("_", " "),
                    show_figure(name, pair.get("used")),
                    show_figure(name, pair.get("max")),
                )
            )
    return listed


def _as_is(name: str, value: Any) -> str:
    return "" if value is None else str(value)


def _figure(name: str, value: Any) -> str:
    if not isinstance(value, int):
        return _as_is(name, value)
    if name == "cpu":
        return f"{value / 1000:g}"
    return str(value) if name == "gpu" else quantities.show_size(value)
