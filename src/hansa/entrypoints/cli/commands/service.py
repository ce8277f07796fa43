"""`hansa service`: what runs in a cluster, and starting, stopping and removing it."""

from typing import Annotated, Any

import typer
import yaml

from hansa.entrypoints.cli import confirmation, following, options, secrets, session
from hansa.entrypoints.cli.client import Manager, document, mapping, segment, sequence
from hansa.entrypoints.cli.screen import Screen
from hansa.kernel import errors

app = typer.Typer(help="Services: list, show, start, stop, remove.", no_args_is_help=True)
_NO_DEPLOYMENT = "jobs only"
_SLOW = 120.0  # removing a service also removes its buckets


@app.command("ls")
def list_services(cluster: options.Cluster = None, as_json: options.Json = False) -> None:
    """List the services you can see."""
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        services = sequence(manager.read("/system/services", include="deployment"), manager.name)
    screen.data(secrets.hide(services))
    screen.table(
        ["name", "state", "cpu", "memory", "visibility", "image"],
        [
            (s.get("name"), _state(s), s.get("cpu"), s.get("memory"), s.get("visibility"), s.get("image"))
            for s in services
        ],
        empty="no services",
    )


@app.command()
def show(
    service: options.ServiceName,
    with_secrets: options.Secrets = False,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Show a service's definition and deployment."""
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        found = manager.service(service, deployment=True)
        if "deployment" not in found and (deployment := _deployment(manager, service)):
            found["deployment"] = deployment
    shown = found if with_secrets else secrets.hide(found)
    screen.data(shown)
    state = _state(found)
    told = shown | {"deployment": state} if state == _NO_DEPLOYMENT else shown
    screen.block(as_yaml(_without_empty(told)))


@app.command("rm")
def remove(
    service: options.ServiceName,
    yes: options.Yes = False,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Remove a service, its jobs and its buckets with everything in them."""
    screen = Screen(as_json=as_json)
    confirmation.require(f"remove service {service} with its jobs and buckets?", yes=yes)
    with session.opened(cluster) as manager:
        path = f"/system/services/{segment(service)}"
        manager.call("DELETE", path, what=f"service {service}", timeout=_SLOW)
    screen.data({"service": service, "action": "removed"})
    screen.line(f"removed service {service}")


@app.command()
def logs(
    service: options.ServiceName,
    tail: Annotated[int, typer.Option(min=1, max=1000, help="How many of the newest lines.")] = 200,
    timestamps: Annotated[bool, typer.Option("--timestamps", help="Begin each line with its time.")] = False,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Print the log of a service's deployment, or of its newest job if it has none."""
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        path = f"/system/services/{segment(service)}/deployment/logs"
        params = {"tailLines": str(tail), "timestamps": str(timestamps).lower()}
        try:
            answer = mapping(manager.read(path, what=f"service {service}", **params), manager.name)
        except errors.NotFound:
            answer = {}  # managers before deployments; the next call tells whether the service exists
        if answer.get("available"):
            entries = sequence(answer.get("entries"), manager.name)
            screen.data({"service": service, "entries": entries})
            for entry in entries:
                screen.block(f"{entry.get('timestamp', '')} {entry.get('message', '')}".strip())
            return
        job = following.find(manager, service, None)
        log = following.log_of(manager, service, job.name, timestamps=timestamps)
    screen.data({"service": service, "job": job.data(), "log": log.decode(errors="replace")})
    if not as_json:
        screen.note(f"job {job.name}: {job.status}")
        screen.raw(b"".join(log.splitlines(keepends=True)[-tail:]))


@app.command()
def start(service: options.ServiceName, cluster: options.Cluster = None, as_json: options.Json = False) -> None:
    """Start a stopped service that is exposed."""
    _switch(service, "start", cluster, as_json)


@app.command()
def stop(service: options.ServiceName, cluster: options.Cluster = None, as_json: options.Json = False) -> None:
    """Stop a service that is exposed; its definition stays."""
    _switch(service, "stop", cluster, as_json)


@app.command()
def restart(service: options.ServiceName, cluster: options.Cluster = None, as_json: options.Json = False) -> None:
    """Restart a service that is exposed."""
    _switch(service, "restart", cluster, as_json)


def _switch(service: str, action: str, cluster: str | None, as_json: bool) -> None:
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        path = f"/system/services/{segment(service)}/{action}"
        answer = manager.call("POST", path, what=f"service {service}", timeout=_SLOW)
        state = mapping(document(answer, manager.name), manager.name)
    screen.data(state)
    screen.line(f"{service}: {state.get('state', 'unknown')} {state.get('reason', '')}".rstrip())


def _state(service: dict[str, Any]) -> str:
    deployment = service.get("deployment")
    state = deployment.get("state") if isinstance(deployment, dict) else None
    return _NO_DEPLOYMENT if state in (None, "unavailable") else str(state)


def _deployment(manager: Manager, service: str) -> dict[str, Any]:
    try:
        return mapping(manager.read(f"/system/services/{segment(service)}/deployment"), manager.name)
    except errors.HansaError:
        return {}  # an older manager; the definition is worth showing without it


def _without_empty(value: dict[str, Any]) -> dict[str, Any]:
    """For people: fields that say nothing are left out."""
    kept = {}
    for key, item in value.items():
        said = _without_empty(item) if isinstance(item, dict) else item
        if said not in (None, "", [], {}, 0, False):
            kept[key] = said
    return kept


class _Dumper(yaml.SafeDumper):
    """Scripts as blocks, keys in the manager's order."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def as_yaml(value: Any) -> str:
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)).rstrip()
