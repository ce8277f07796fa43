"""`hansa config ls`, `show`, `versions`, `diff` and `effective`: what the hub tells whom."""

from collections.abc import Iterable
from typing import Annotated

import msgspec
import typer

from hansa.entrypoints.cli import hub_session, moments, options, trees
from hansa.entrypoints.cli.commands.cluster.reading import warn_of_age
from hansa.entrypoints.cli.screen import Screen
from hansa.messages.configuration import ClusterVersion, Document, DocumentState, DocumentSummary, Rollout, ToldScope

Name = Annotated[str, typer.Argument(metavar="NAME", help="The document's name.")]


def list_documents(hub: options.Hub = None, as_json: options.Json = False) -> None:
    """List the configuration documents, how far each is, and who does not have what it should."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        found = opened.federation_config()
    screen.data(msgspec.to_builtins(found))
    screen.table(
        ["document", "version", "for", "rollout", "clusters", "sets"],
        [
            (one.name, one.version, whom(one.scope), _rollout(one), _counted(one), one.settings)
            for one in found.documents
        ],
        empty="no documents; every cluster goes by its own settings",
    )
    for drift in found.drift:
        screen.warn(f"{drift.cluster}: {drift.document} {drift.state}: {drift.reason}")
    warn_of_age(screen, found.age)


def show(
    name: Name,
    version: Annotated[int | None, typer.Option("--version", min=1, help="An older one.")] = None,
    hub: options.Hub = None,
    as_json: options.Json = False,
) -> None:
    """Show what a document says, how it spreads, and which version each cluster has."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        if version is not None:
            document = opened.config_version(name, version)
            screen.data(msgspec.to_builtins(document))
            print_document(screen, document)
            return
        found = opened.config(name)
    print_state(screen, found)


def versions(name: Name, hub: options.Hub = None, as_json: options.Json = False) -> None:
    """List everything a document ever said."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        found = opened.config_versions(name)
    screen.data(msgspec.to_builtins(found))
    rows = [
        (one.version, moments.moment(one.created), one.author, whom(one.scope), _said(one), one.comment)
        for one in found.versions
    ]
    screen.table(["version", "made", "by", "for", "says", "comment"], rows)


def diff(
    name: Name,
    before: Annotated[int | None, typer.Option("--from", min=0, help="0 is nothing; else the one before.")] = None,
    after: Annotated[int | None, typer.Option("--to", min=0, help="Else the newest.")] = None,
    hub: options.Hub = None,
    as_json: options.Json = False,
) -> None:
    """Show what changed from one version of a document to another."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        found = opened.config_diff(name, before=before, after=after)
    screen.data(msgspec.to_builtins(found))
    screen.line(f"{found.document}: version {found.before} → {found.after}")
    if found.scope is not None:
        screen.line(f"  for {found.scope[0]} → {found.scope[1]}")
    for one in found.settings:
        old = "(not set)" if one.change == "added" else trees.shown(one.before)
        new = "(not set)" if one.change == "removed" else trees.shown(one.after)
        screen.line(f"  {one.setting}: {old} → {new}")
    if not found.settings and found.scope is None:
        screen.note("they say the same")


def effective(cluster: options.Member, hub: options.Hub = None, as_json: options.Json = False) -> None:
    """Show what one cluster should do, and which document each value comes from."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        found = opened.effective_config(cluster)
    screen.data(msgspec.to_builtins(found))
    screen.table(
        ["setting", "value", "from", "instead of"],
        [
            (one.setting, trees.shown(one.value), f"{one.document} v{one.version}", one.overrides)
            for one in found.origins
        ],
        empty=f"nothing is told to {cluster}; it goes by its own settings",
    )
    if found.drift:
        screen.warn(f"{cluster}: {found.drift}")


def whom(scope: ToldScope) -> str:
    return f"cluster {scope.cluster}" if scope.cluster else (scope.selector or "every cluster")


def _rollout(one: DocumentSummary) -> str:
    made = one.rollout
    going = made is not None and made.state in ("running", "soaking", "paused")
    return "" if made is None else (f"{made.state} {made.stage}/{made.stages}" if going else made.state)


def _counted(one: DocumentSummary) -> str:
    return ", ".join(f"{count} {state}" for state, count in one.clusters.items() if count)


def _said(one: Document) -> str:
    if one.removed:
        return "(removed)"
    return ", ".join(f"{setting}={trees.shown(value)}" for setting, value in trees.leaves(one.settings))


def print_document(screen: Screen, one: Document) -> None:
    screen.facts(
        [
            ("document", one.name),
            ("version", f"{one.version}{' (removed)' if one.removed else ''}"),
            ("for", whom(one.scope)),
            ("made", f"{moments.moment(one.created)} by {one.author}"),
            ("comment", one.comment),
            *((setting, trees.shown(value)) for setting, value in trees.leaves(one.settings)),
        ]
    )


def print_state(screen: Screen, found: DocumentState) -> None:
    screen.data(msgspec.to_builtins(found))
    print_document(screen, found.document)
    if found.rollout is not None:
        screen.facts(rollout_facts(found.rollout))
    print_clusters(screen, found.clusters)


def rollout_facts(one: Rollout) -> list[tuple[str, str]]:
    return [
        ("rollout", f"version {one.former} → {one.version}: {one.state}, stage {one.stage} of {one.stages}"),
        ("why", one.reason),
        ("since", moments.moment(one.since)),
    ]


def print_clusters(screen: Screen, clusters: Iterable[ClusterVersion]) -> None:
    rows = [(one.cluster, one.state, one.applied or "none", one.desired or "none", one.error) for one in clusters]
    if rows:
        screen.table(["cluster", "state", "has", "should have", "why not"], rows)


def register(app: typer.Typer) -> None:
    app.command("ls")(list_documents)
    for command in (show, versions, diff, effective):
        app.command()(command)
