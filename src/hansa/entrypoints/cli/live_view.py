"""How does the federation look at a glance? The picture as lines for a terminal of any size. Pure, but for the clock.

`hansa top` draws it again and again. Who needs attention stands first; what does not fit is counted.
"""

from collections.abc import Iterable, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from hansa.client import Picture
from hansa.entrypoints.cli import figures, moments
from hansa.entrypoints.cli.screen import plain, style_of
from hansa.messages.inventory import Change, ClusterInventory

COLUMNS = ("cluster", "state", "region", "nodes", "cpu", "memory", "gpu", "services", "jobs", "heard")
_ORDER = ("unreachable", "degraded", "leaving", "draining", "pending", "ready", "left")
_BAR = 8
_CHANGES = 5


def drawn(picture: Picture, *, hub: str, now: float, height: int, trouble: str = "") -> Group:
    """The whole view, in at most so many lines."""
    clusters = in_order(picture.clusters.values())
    changes = list(picture.recent)[-_CHANGES:]
    room = max(3, height - 6 - len(changes))
    parts: list[Text | Table] = [headline(picture, hub, now), summary(picture)]
    if trouble:
        parts.append(Text(plain(trouble), style="red"))
    parts += [Text(""), table(clusters[:room], now)]
    if len(clusters) > room:
        parts.append(Text(f"… and {len(clusters) - room} more", style="dim"))
    parts += [Text(plain(change_line(one)), style="dim") for one in changes]
    return Group(*parts)


def headline(picture: Picture, hub: str, now: float) -> Text:
    states = ", ".join(f"{count} {state}" for state, count in sorted(picture.by_state.items(), key=_by_need))
    what = f"{len(picture.clusters)} clusters: {states}" if picture.clusters else "no clusters"
    return Text(f"{plain(hub)}  {moments.moment(now)}  {what}", style="bold")


def _by_need(item: tuple[str, int]) -> int:
    return _ORDER.index(item[0]) if item[0] in _ORDER else len(_ORDER)


def summary(picture: Picture) -> Text:
    total = picture.total
    parts = [
        f"cpu {bar(total.cpu_used, total.cpu)} {figures.cpu(total)}",
        f"memory {bar(total.memory_used, total.memory)} {figures.memory(total)}",
    ]
    if total.gpu:
        parts.append(f"gpu {bar(total.gpu_used, total.gpu)} {figures.gpu(total)}")
    parts.append(f"jobs {figures.jobs(total)}")
    return Text("   ".join(parts))


def bar(used: int, there_is: int) -> str:
    """Reads without colour, and says the share too."""
    share = min(1.0, used / there_is) if there_is > 0 else 0.0
    full = round(share * _BAR)
    return f"{'█' * full}{'░' * (_BAR - full)} {share:>4.0%}"


def table(clusters: Sequence[ClusterInventory], now: float) -> Table:
    found = Table(box=None, pad_edge=False, header_style="bold")
    for column in COLUMNS:
        found.add_column(Text(column.upper()), no_wrap=True, overflow="ellipsis")
    for one in clusters:
        cells = row(one, now)
        found.add_row(*(Text(cell, style=style_of(cell) if place == 1 else "") for place, cell in enumerate(cells)))
    return found


def row(one: ClusterInventory, now: float) -> list[str]:
    totals = one.totals
    return [
        plain(one.id),
        one.state,
        plain(one.region),
        f"{totals.nodes_ready}/{totals.nodes}" if totals.nodes else "",
        bar(totals.cpu_used, totals.cpu) if totals.cpu else "",
        bar(totals.memory_used, totals.memory) if totals.memory else "",
        f"{totals.gpu_used}/{totals.gpu}" if totals.gpu else "",
        str(totals.services),
        f"{totals.jobs_running}+{totals.jobs_waiting}",
        moments.ago(one.seen, now),
    ]


def in_order(clusters: Iterable[ClusterInventory]) -> list[ClusterInventory]:
    """Who needs attention first; then by name."""
    return sorted(clusters, key=lambda one: (_by_need((one.state, 0)), one.id))


def change_line(one: Change) -> str:
    return f"{moments.moment(one.at)}  {one.cluster or 'federation'}  {one.kind}: {one.detail}"
