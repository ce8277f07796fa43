"""`hansa federation`: a service's replicas in other clusters, and with which credentials they are reached."""

from typing import Annotated, Any

import typer

from hansa.entrypoints.cli import confirmation, options, session
from hansa.entrypoints.cli.client import Manager, document, mapping, segment, sequence
from hansa.entrypoints.cli.screen import Screen

app = typer.Typer(help="Federations: their members and their credentials.", no_args_is_help=True)
token = typer.Typer(help="The refresh token of a federated service.", no_args_is_help=True)
app.add_typer(token, name="token")
_SLOW = 60.0  # the issuer is asked meanwhile


@token.command("show")
def show_token(service: options.ServiceName, cluster: options.Cluster = None, as_json: options.Json = False) -> None:
    """Show whether a service's refresh token works, never the token itself."""
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        _print(screen, _credentials(manager, "GET", service))


@token.command("rotate")
def rotate_token(service: options.ServiceName, cluster: options.Cluster = None, as_json: options.Json = False) -> None:
    """Exchange a service's refresh token now, and keep the new one if its issuer gives one."""
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        _print(screen, _credentials(manager, "POST", service, "/rotate"))


@token.command("revoke")
def revoke_token(
    service: options.ServiceName,
    yes: options.Yes = False,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Revoke a service's refresh token at its issuer and remove it from the cluster."""
    screen = Screen(as_json=as_json)
    confirmation.require(f"revoke the refresh token of service {service}? its jobs stay in this cluster then", yes=yes)
    with session.opened(cluster) as manager:
        _print(screen, _credentials(manager, "DELETE", service))


@token.command("audit")
def audit_token(
    service: options.ServiceName,
    most: Annotated[int, typer.Option("--most", min=1, max=1000, help="How many of the newest entries.")] = 50,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """List who used a service's refresh token, newest first."""
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        path = f"/v1/services/{segment(service)}/audit"
        found = mapping(manager.read(path, what=f"service {service}", most=str(most)), manager.name)
        entries = sequence(found.get("entries"), manager.name)
    screen.data(found)
    screen.table(
        ["at", "actor", "action", "detail"],
        [(one.get("at"), one.get("actor"), one.get("action"), one.get("detail")) for one in entries],
        empty="nobody used its refresh token yet",
    )


def _credentials(manager: Manager, method: str, service: str, rest: str = "") -> dict[str, Any]:
    path = f"/v1/services/{segment(service)}/credentials{rest}"
    answer = manager.call(method, path, what=f"service {service}", timeout=_SLOW)
    return mapping(document(answer, manager.name), manager.name)


def _print(screen: Screen, found: dict[str, Any]) -> None:
    screen.data(found)
    rotates = {"True": "yes", "False": "no"}.get(str(found.get("rotates")), "not known yet")
    screen.facts(
        [
            ("service", found.get("service")),
            ("state", found.get("state")),
            ("since", found.get("since")),
            ("meaning", found.get("sentence")),
            ("issuer", found.get("issuer")),
            ("issuer replaces it", rotates if found.get("source") == "own" else ""),
            ("obtained", found.get("obtained")),
            ("last exchanged", found.get("renewed")),
            ("rotation due", found.get("rotation_due")),
            ("access token until", found.get("access_expires")),
            ("hint", found.get("hint")),
        ]
    )
