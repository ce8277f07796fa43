"""`hansa server` and `hansa doctor`: run a manager here, and check whether this machine can."""

import asyncio
import inspect
import os
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
_DEFAULT = Path("hansa.toml")
_WORD = {True: "ok", False: "failed", None: "skipped"}


def server(config: Config = None) -> None:
    """Run a manager on this machine."""
    # Loaded only here: every other command starts without the server's libraries.
    from hansa.entrypoints import http  # noqa: PLC0415

    http.serve(load_settings(config))


def doctor(config: Config = None, as_json: options.Json = False) -> None:
    """Check what this machine can run."""
    checks = import_module("hansa.bootstrap").doctor(load_settings(config))
    if inspect.iscoroutine(checks):
        checks = asyncio.run(checks)
    raise typer.Exit(report(list(checks), Screen(as_json=as_json)))


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
