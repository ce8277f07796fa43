"""`hansa policy`: the rules of the federation, and what a new one would change."""

from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec
import typer

from hansa.client import HubClient, errors
from hansa.entrypoints.cli import confirmation, hub_session, moments, options, trees
from hansa.entrypoints.cli.commands.cluster.reading import warn_of_age
from hansa.entrypoints.cli.commands.service import as_yaml
from hansa.entrypoints.cli.screen import Screen
from hansa.messages.policies import DryRun, NewPolicy, Policy, PolicyKind

app = typer.Typer(help="Policies of the federation: who may join, what may run where.", no_args_is_help=True)
KINDS = get_args(PolicyKind)
Name = Annotated[str, typer.Argument(metavar="NAME", help="The policy's name.")]
File = Annotated[
    Path, typer.Option("--file", "-f", metavar="FILE", help="Its rules, as TOML, YAML or JSON; - is stdin.")
]
Kind = Annotated[
    str | None,
    typer.Option("--kind", metavar="KIND", help=f"{', '.join(KINDS)}; needed for a new one, unless the file says it."),
]
Comment = Annotated[str, typer.Option("--comment", "-m", help="Why, for the history.")]
Expected = Annotated[int | None, typer.Option("--expected", help="The version yours is based on.")]


@app.command("ls")
def list_policies(hub: options.Hub = None, as_json: options.Json = False) -> None:
    """List the policies in force."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        found = opened.policies()
    screen.data(msgspec.to_builtins(found))
    screen.table(
        ["policy", "kind", "version", "made", "by", "comment"],
        [
            (one.name, one.kind, one.version, moments.moment(one.created), one.author, one.comment)
            for one in found.policies
        ],
        empty="no policies; everything that is possible is allowed",
    )
    warn_of_age(screen, found.age)


@app.command()
def show(name: Name, hub: options.Hub = None, as_json: options.Json = False) -> None:
    """Show a policy."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        found = opened.policy(name)
    _print(screen, found)


@app.command()
def put(
    name: Name,
    file: File,
    kind: Kind = None,
    comment: Comment = "",
    expected: Expected = None,
    hub: options.Hub = None,
    as_json: options.Json = False,
) -> None:
    """Put a policy, or a new version of it, in force."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        new = _new(opened, name, trees.read(file), kind, comment, expected)
        found = opened.put_policy(name, new)
    _print(screen, found)


@app.command("dry-run")
def dry_run(
    name: Name,
    file: File,
    kind: Kind = None,
    hub: options.Hub = None,
    as_json: options.Json = False,
) -> None:
    """Show what would be different with a policy; nothing is changed."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        found = opened.dry_run_policy(name, _new(opened, name, trees.read(file), kind, "", None))
    screen.data(msgspec.to_builtins(found))
    _print_dry_run(screen, found)


@app.command()
def versions(name: Name, hub: options.Hub = None, as_json: options.Json = False) -> None:
    """List everything a policy ever said."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        found = opened.policy_versions(name)
    screen.data(msgspec.to_builtins(found))
    rows = [(one.version, moments.moment(one.created), one.author, _said(one), one.comment) for one in found.versions]
    screen.table(["version", "made", "by", "says", "comment"], rows)


@app.command("rm")
def remove(name: Name, yes: options.Yes = False, hub: options.Hub = None, as_json: options.Json = False) -> None:
    """Put a policy out of force; its history stays."""
    screen = Screen(as_json=as_json)
    confirmation.require(f"put policy {name} out of force?", yes=yes)
    with hub_session.opened(hub) as opened:
        found = opened.remove_policy(name)
    screen.data(msgspec.to_builtins(found))
    screen.line(f"policy {name} is in force no longer")


def _new(
    hub: HubClient, name: str, tree: dict[str, Any], kind: str | None, comment: str, expected: int | None
) -> NewPolicy:
    """The file may hold the rules alone, or `kind` beside `rules`."""
    rules = tree
    if set(tree) == {"kind", "rules"}:
        rules, kind = tree["rules"], kind or str(tree["kind"])
    if kind is None:
        try:
            kind = hub.policy(name).kind
        except errors.NotFound:
            raise typer.BadParameter(f"say of which kind it is: {', '.join(KINDS)}", param_hint="--kind") from None
    try:
        return msgspec.convert({"kind": kind, "rules": rules, "comment": comment, "expected": expected}, NewPolicy)
    except msgspec.ValidationError as error:
        raise typer.BadParameter(f"{error}; kinds are {', '.join(KINDS)}", param_hint="--kind") from None


def _said(one: Policy) -> str:
    if one.removed:
        return "(removed)"
    return ", ".join(f"{rule}={trees.shown(value)}" for rule, value in trees.leaves(one.rules))


def _print(screen: Screen, one: Policy) -> None:
    screen.data(msgspec.to_builtins(one))
    screen.facts(
        [
            ("policy", one.name),
            ("kind", one.kind),
            ("version", f"{one.version}{' (removed)' if one.removed else ''}"),
            ("made", f"{moments.moment(one.created)} by {one.author}"),
            ("comment", one.comment),
        ]
    )
    said = {rule: value for rule, value in one.rules.items() if value not in ("", [], {}, None)}
    screen.block(as_yaml(said) if said else "")


def _print_dry_run(screen: Screen, found: DryRun) -> None:
    screen.line(f"{found.policy} would be version {found.version}")
    for difference in found.differences:
        screen.line(f"  {difference}")
    if found.effects:
        screen.table(["what", "now", "then"], [(one.subject, one.before, one.after) for one in found.effects])
    else:
        screen.note("nothing would be different for any cluster")
    for warning in found.warnings:
        screen.warn(warning)
