"""`hansa config put` and `rm`: a new version of a document, and how it shall spread."""

from pathlib import Path
from typing import Annotated

import typer

from hansa.entrypoints.cli import confirmation, hub_session, options, trees
from hansa.entrypoints.cli.commands.config.reading import Name, print_state
from hansa.entrypoints.cli.commands.config.rolling import Follow, Timeout, ended, followed
from hansa.entrypoints.cli.screen import Screen
from hansa.messages.configuration import NewDocument, Scope, Stages

_USUAL = Stages()
_AT_ONCE = Stages(canary=0, percentages=(100,), soak=0.0)


def put(
    name: Name,
    *,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", metavar="FILE", help="The settings, as TOML, YAML or JSON; - is stdin."),
    ] = None,
    given: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="One setting; may be repeated.")
    ] = None,
    selector: Annotated[str, typer.Option("--selector", "-l", metavar="TERMS", help="For those it means.")] = "",
    member: Annotated[str, typer.Option("--for", metavar="CLUSTER", help="For one cluster; else for everybody.")] = "",
    canary: Annotated[int, typer.Option("--canary", min=0, help="So many clusters get it first.")] = _USUAL.canary,
    percent: Annotated[str, typer.Option("--percent", help="Then so many of all, stage by stage.")] = "25,100",
    soak: Annotated[float, typer.Option("--soak", min=0, help="Seconds of good health after a stage.")] = _USUAL.soak,
    failures: Annotated[int, typer.Option("--most-failures", min=0, help="More stop it.")] = _USUAL.most_failures,
    patience: Annotated[
        float, typer.Option("--patience", min=0, help="Seconds for a cluster to take it.")
    ] = _USUAL.patience,
    back: Annotated[
        bool, typer.Option("--roll-back", help="When failures stop it, all go back by themselves.")
    ] = False,
    at_once: Annotated[bool, typer.Option("--at-once", help="To all at once, without stages.")] = False,
    comment: Annotated[str, typer.Option("--comment", "-m", help="Why, for the history.")] = "",
    expected: Annotated[int | None, typer.Option("--expected", help="The version yours is based on.")] = None,
    wait: Follow = False,
    timeout: Timeout = 3600.0,
    hub: options.Hub = None,
    as_json: options.Json = False,
) -> None:
    """Tell clusters settings that win over their own; they apply them without a restart, stage by stage."""
    if selector and member:
        raise typer.BadParameter("give --selector or --for, not both", param_hint="--for")
    tree = trees.with_settings(trees.read(file) if file is not None else {}, given or [])
    if not tree:
        raise typer.BadParameter("give --file, or --set jobs.run_limit=120", param_hint="--file")
    usual = Stages(
        canary=canary, percentages=_percentages(percent), soak=soak, most_failures=failures, patience=patience,
        roll_back=back,
    )  # fmt: skip
    new = NewDocument(
        settings=tree,
        scope=Scope(selector=selector, cluster=member),
        stages=_AT_ONCE if at_once else usual,
        comment=comment,
        expected=expected,
    )
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        found = opened.put_config(name, new)
        result = followed(opened, name, screen, timeout) if wait else None
        if result is not None:
            found = opened.config(name)
    print_state(screen, found)
    if result is not None:
        raise typer.Exit(ended(result))


def remove(
    name: Name,
    at_once: Annotated[bool, typer.Option("--at-once", help="Everywhere at once; else in stages.")] = False,
    yes: options.Yes = False,
    hub: options.Hub = None,
    as_json: options.Json = False,
) -> None:
    """Take a document away; clusters then go by what is left, and its history stays."""
    screen = Screen(as_json=as_json)
    confirmation.require(f"take configuration {name} away from all clusters?", yes=yes)
    with hub_session.opened(hub) as opened:
        found = opened.remove_config(name, at_once=at_once)
    print_state(screen, found)


def _percentages(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no list such as 25,100", param_hint="--percent") from None


def register(app: typer.Typer) -> None:
    app.command()(put)
    app.command("rm")(remove)
