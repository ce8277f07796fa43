"""`hansa cluster update` and `add-oscar`: what is known of a cluster, and clusters without a manager of ours."""

import os
import sys
from typing import Annotated, TypeVar

import msgspec
import typer

from hansa.entrypoints.cli import hub_session, options, session
from hansa.entrypoints.cli.commands.cluster.reading import facts_of
from hansa.entrypoints.cli.screen import Screen
from hansa.messages.clusters import Cluster, Coordinates, Cost, FactsChange, NewOscarCluster

T = TypeVar("T")
Name = Annotated[str | None, typer.Option("--name", help="What people call it.")]
About = Annotated[str | None, typer.Option("--about", metavar="TEXT", help="What it is for, in a sentence.")]
Region = Annotated[str | None, typer.Option("--region", help="Where it is, such as eu-north.")]
Zone = Annotated[str | None, typer.Option("--zone", help="Where in the region.")]
Labels = Annotated[
    list[str] | None, typer.Option("--label", metavar="KEY=VALUE", help="A label of your own; may be repeated.")
]


def update(
    cluster: options.Member,
    *,
    name: Name = None,
    about: About = None,
    region: Region = None,
    zone: Zone = None,
    at: Annotated[str | None, typer.Option("--at", metavar="LATITUDE,LONGITUDE", help="Where on the map.")] = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="KEY=VALUE", help="Its labels, all of them; may be repeated.")
    ] = None,
    cpu_hour: Annotated[float | None, typer.Option("--cpu-hour", min=0, help="What a core costs an hour.")] = None,
    memory_hour: Annotated[float | None, typer.Option("--memory-hour", min=0, help="What a GiB costs an hour.")] = None,
    hub: options.Hub = None,
    as_json: options.Json = False,
) -> None:
    """Say something of a cluster; it wins over what the cluster says itself. What is not given stays."""
    change = FactsChange(
        name=_given(name),
        description=_given(about),
        region=_given(region),
        zone=_given(zone),
        coordinates=_given(_place(at)),
        metadata=_given(None if label is None else _labels(label)),
    )
    with_cost = cpu_hour is not None or memory_hour is not None
    if not with_cost and change == FactsChange():
        raise typer.BadParameter("give something to say, such as --region eu", param_hint="--region")
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        if with_cost:
            now = opened.cluster(cluster).facts.cost
            change = msgspec.structs.replace(change, cost=_cost(now, cpu_hour, memory_hour))
        one = opened.change_facts(cluster, change)
    _print(screen, one)


def add_oscar(
    cluster: Annotated[str, typer.Argument(metavar="CLUSTER", help="The id it gets.")],
    endpoint: Annotated[str, typer.Argument(metavar="URL", help="Where its manager answers.")],
    *,
    user: Annotated[str, typer.Option("--user", "-u", help="With whom the hub signs in there.")] = "",
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from stdin; else HANSA_PASSWORD.")
    ] = False,
    insecure: Annotated[bool, typer.Option("--insecure", help="Accept any certificate.")] = False,
    name: Name = None,
    about: About = None,
    region: Region = None,
    zone: Zone = None,
    label: Labels = None,
    hub: options.Hub = None,
    as_json: options.Json = False,
) -> None:
    """Register an OSCAR cluster; the hub itself looks how it is."""
    password = sys.stdin.readline().rstrip("\r\n") if password_stdin else os.environ.get("HANSA_PASSWORD", "")
    new = NewOscarCluster(
        id=cluster,
        endpoint=session.checked_url(endpoint),
        user=user,
        password=password if user else "",
        verify=not insecure,
        name=name or "",
        description=about or "",
        region=region or "",
        zone=zone or "",
        metadata=_labels(label or []),
    )
    screen = Screen(as_json=as_json)
    with hub_session.opened(hub) as opened:
        one = opened.register_oscar(new)
    _print(screen, one)


def _given(value: T | None) -> T | msgspec.UnsetType:
    return msgspec.UNSET if value is None else value


def _place(text: str | None) -> Coordinates | None:
    if text is None:
        return None
    latitude, _, longitude = text.partition(",")
    try:
        return Coordinates(latitude=float(latitude), longitude=float(longitude))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no place; write it as 53.87,10.69", param_hint="--at") from None


def _labels(texts: list[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not (key and sign):
            raise typer.BadParameter(f"{text!r} is no label; write it as tier=gold", param_hint="--label")
        found[key] = value
    return found


def _cost(now: Cost, cpu_hour: float | None, memory_hour: float | None) -> Cost:
    return msgspec.structs.replace(
        now,
        cpu_hour=now.cpu_hour if cpu_hour is None else cpu_hour,
        memory_hour=now.memory_hour if memory_hour is None else memory_hour,
    )


def _print(screen: Screen, one: Cluster) -> None:
    screen.data(msgspec.to_builtins(one))
    screen.facts(facts_of(one))


def register(app: typer.Typer) -> None:
    app.command()(update)
    app.command("add-oscar")(add_oscar)
