"""`hansa federation-status`: how the whole is, why it is not better, and what happened last."""

import msgspec
import typer

from hansa.entrypoints.cli import figures, hub_session, live_view, moments, options
from hansa.entrypoints.cli.commands.cluster.reading import warn_of_age
from hansa.entrypoints.cli.screen import Screen


def federation_status(hub: options.Hub = None, as_json: options.Json = False) -> None:
    """Show how the federation is: a score with its reasons, what is degraded, what changed last."""
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        found = opened.federation_status()
    screen.data(msgspec.to_builtins(found))
    states = ", ".join(f"{count} {state}" for state, count in found.by_state.items() if count)
    screen.facts(
        [
            ("health", f"{found.score:g} of 100"),
            ("clusters", f"{found.clusters}: {states}" if states else str(found.clusters)),
            *figures.rows(found.total),
            ("hubs", ", ".join(found.hubs)),
        ]
    )
    if found.reasons:
        screen.table(["points", "why not better"], [(f"-{one.points:g}", one.reason) for one in found.reasons])
    if found.degraded:
        rows = [(one.cluster, one.state, moments.span(found.at - one.since), one.reason) for one in found.degraded]
        screen.table(["cluster", "state", "for", "why"], rows)
    for change in found.recent:
        screen.line(live_view.change_line(change))
    warn_of_age(screen, found.age)


def register(app: typer.Typer) -> None:
    app.command("federation-status")(federation_status)
