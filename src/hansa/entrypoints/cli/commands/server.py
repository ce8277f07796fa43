"""`hansa server` and `hansa doctor`: run a manager, and check whether this machine or a Kubernetes can carry it."""

import asyncio
import inspect
import os
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hansa.entrypoints.cli import options
from hansa.entrypoints.cli.screen import Screen

if TYPE_CHECKING:
    from hansa.settings import Settings

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The settings file; else HANSA_CONFIG, else hansa.toml here, else defaults.",
    ),
]


class Driver(StrEnum):
    LOCAL = "local"
    KUBERNETES = "kubernetes"


_DEFAULT = Path("hansa.toml")
_WORD = {True: "ok", False: "failed", None: "skipped"}


def server(config: Config = None) -> None:
    """Run a manager on this machine."""
    # Loaded only here: every other command starts without the server's libraries.
    from hansa.entrypoints import http  # noqa: PLC0415

    http.serve(load_settings(config))


def doctor(
    config: Config = None,
    driver: Annotated[
        Driver | None, typer.Option("--driver", help="What is to run services and jobs; else what the settings say.")
    ] = None,
    kubeconfig: Annotated[
        Path | None,
        typer.Option("--kubeconfig", metavar="FILE", help="Of the cluster to check; else what the settings say."),
    ] = None,
    context: Annotated[
        str | None, typer.Option("--context", metavar="NAME", help="Which context of that file; else its current one.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Check what this machine, or a Kubernetes cluster, can run."""
    given = _aimed(load_settings(config), driver, kubeconfig, context)
    checks = import_module("hansa.bootstrap").doctor(given)
    if inspect.iscoroutine(checks):
        checks = asyncio.run(checks)
    raise typer.Exit(report(list(checks), Screen(as_json=as_json)))


def _aimed(given: "Settings", driver: Driver | None, kubeconfig: Path | None, context: str | None) -> "Settings":
    """At the cluster that was named; naming one is asking for it."""
    named = {"kubeconfig": kubeconfig, "context": context}
    asked = {name: value for name, value in named.items() if value is not None}
    chosen = driver.value if driver else "kubernetes" if asked else given.driver
    changed = {"driver": chosen, "kubernetes": given.kubernetes.model_copy(update=asked)}
    return given.model_copy(update=changed)


def report(checks: list[Any], screen: Screen) -> int:
    """Prints checks (name, ok, detail, hint) and gives the exit code."""
    rows = [{"name": c.name, "ok": c.ok, "detail": c.detail, "hint": c.hint} for c in checks]
    screen.data(rows)
    screen.table(["check", "result", "detail"], [(row["name"], _WORD[row["ok"]], row["detail"]) for row in rows])
    failed = [row for row in rows if row["ok"] is False]
    for row in rows:
        if row["ok"] is None and row["hint"]:
            screen.note(f"{row['name']}: {row['hint']}")
    for row in failed:
        screen.error(f"{row['name']}: {row['detail']}", row["hint"])
    return 1 if failed else 0


def load_settings(config: Path | None) -> "Settings":
    """The settings a server started here would have."""
    from hansa import settings  # noqa: PLC0415

    if config is None and not os.environ.get("HANSA_CONFIG") and _DEFAULT.exists():
        config = _DEFAULT
    return settings.load(config)


def register(app: typer.Typer) -> None:
    app.command()(server)
    app.command()(doctor)
