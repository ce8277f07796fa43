"""`hansa cluster ls` and `show`: which clusters belong, and how they are."""

import time
from typing import Annotated, Any

import msgspec
import typer

from hansa.entrypoints.cli import figures, hub_session, moments, options
from hansa.entrypoints.cli.screen import Screen
from hansa.messages.clusters import Cluster, Link
from hansa.messages.inventory import ClusterStatus
from hansa.messages.members import LinkSeen, Node, Totals

Selector = Annotated[
    str,
    typer.Option(
        "--selector", "-l", metavar="TERMS", help='Only those it means, such as "region=eu gpu>0 state=ready".'
    ),
]
LINK_COLUMNS = ("reaches", "up", "for", "latency", "loss", "why not")
_OLD = 5.0  # seconds; a hub is in step with its database twice a second


def list_clusters(selector: Selector = "", hub: options.Hub = None, as_json: options.Json = False) -> None:
    """List the clusters of the federation."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        found = opened.clusters(selector=selector)
    screen.data(msgspec.to_builtins(found))
    now = time.time()
    screen.table(
        ["cluster", "state", "for", "region", "version", "heard", "why"],
        [
            (
                one.id,
                state(one),
                moments.span(now - one.since),
                one.facts.region,
                one.facts.version or one.kind,
                moments.ago(one.seen, now),
                one.reason,
            )
            for one in found.clusters
        ],
        empty="no cluster means that" if selector else "no cluster yet; let one in with: hansa cluster token create",
    )
    warn_of_age(screen, found.age)


def show(cluster: options.Member, hub: options.Hub = None, as_json: options.Json = False) -> None:
    """Show one cluster: its state and why, what it says of itself, what it has, whom it reaches."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        found = opened.cluster_status(cluster)
    screen.data(msgspec.to_builtins(found))
    screen.facts([*facts_of(found.cluster), *figures.rows(section(found, "totals", Totals()))])
    nodes = section(found, "nodes", ())
    if nodes:
        screen.table(
            ["node", "ready", *figures.NODE_COLUMNS], [(one.name, one.ready, *figures.node(one)) for one in nodes]
        )
    reached = section(found, "links", ())
    if reached:
        screen.table(LINK_COLUMNS, [link_row(one) for one in reached])


def links(
    cluster: Annotated[str, typer.Argument(metavar="CLUSTER", help="Only those of this cluster.")] = "",
    hub: options.Hub = None,
    as_json: options.Json = False,
) -> None:
    """List how the clusters reach each other, as their managers measured it."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        found = opened.links(cluster=cluster)
    screen.data(msgspec.to_builtins(found))
    rows = [(one.source, *link_row(one)) for one in found.links]
    screen.table(["cluster", *LINK_COLUMNS], rows, empty="no cluster told of any link yet")
    for one in found.disagreements:
        screen.warn(f"{' and '.join(one.clusters)}: {one.detail}")
    warn_of_age(screen, found.age)


def facts_of(one: Cluster) -> list[tuple[str, Any]]:
    facts, place = one.facts, one.facts.coordinates
    return [
        ("cluster", one.id),
        ("name", facts.name if facts.name != one.id else ""),
        ("about", facts.description),
        ("state", state(one)),
        ("why", one.reason),
        ("since", moments.moment(one.since)),
        ("kind", one.kind),
        ("version", facts.version),
        ("endpoint", facts.endpoint if facts.verify else f"{facts.endpoint}, its certificate not checked"),
        ("asks for", one.asks_for),
        ("region", " / ".join(part for part in (facts.region, facts.zone) if part)),
        ("at", f"{place.latitude:g}, {place.longitude:g}" if place else ""),
        ("labels", ", ".join(f"{key}={value}" for key, value in sorted(facts.metadata.items()))),
        ("joined", moments.moment(one.joined)),
        ("last heard", moments.moment(one.seen) or "never"),
        ("certificate until", moments.moment(one.certificate_until)),
    ]


def state(one: Cluster) -> str:
    open_for_work = not one.cordoned or one.state in ("draining", "leaving", "left")
    return one.state if open_for_work else f"{one.state}, cordoned"


_SECTIONS: dict[str, Any] = {"totals": Totals, "nodes": tuple[Node, ...], "links": tuple[LinkSeen, ...]}


def section(found: ClusterStatus, name: str, default: Any) -> Any:
    """What the cluster said under this name; what another version tells differently is left to --json."""
    try:
        return msgspec.convert(found.sections[name], _SECTIONS[name])
    except (KeyError, msgspec.ValidationError):
        return default


def link_row(one: LinkSeen | Link) -> tuple[Any, ...]:
    latency = f"{one.latency * 1000:.1f} ms" if one.latency is not None else ""
    return one.target, one.up, moments.span(time.time() - one.since), latency, f"{one.loss:.0%}", one.reason


def warn_of_age(screen: Screen, age: float) -> None:
    if age > _OLD:
        screen.warn(f"the hub cannot reach its database; this is as it was {moments.span(age)} ago")


def register(app: typer.Typer) -> None:
    app.command("ls")(list_clusters)
    app.command()(show)
    app.command()(links)
