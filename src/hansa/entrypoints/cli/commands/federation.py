"""`hansa federation`: a service's replicas in other clusters, and with which credentials they are reached."""

import os
from typing import Annotated, Any

import typer

from hansa.entrypoints.cli import confirmation, lending, options, profile_files, profiles, session, topology_drawing
from hansa.entrypoints.cli.client import Manager, document, mapping, segment, sequence
from hansa.entrypoints.cli.screen import Screen
from hansa.kernel import errors

app = typer.Typer(help="Federations: their members and their credentials.", no_args_is_help=True)
token = typer.Typer(help="The refresh token of a federated service.", no_args_is_help=True)
app.add_typer(token, name="token")
_SLOW = 60.0  # the issuer, or every member, is asked meanwhile
Members = Annotated[list[str], typer.Argument(metavar="MEMBER…", help="cluster/service, or an endpoint's address.")]
Priority = Annotated[int, typer.Option("--priority", "-p", min=0, help="0 is asked first.")]


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


def _member(text: str, priority: int) -> dict[str, Any]:
    """`cluster/service`, or the address of an endpoint."""
    if text.startswith(("http://", "https://")):
        return {"type": "endpoint", "url": text, "ssl_verify": True, "priority": priority}
    cluster_id, slash, service = text.partition("/")
    if not (slash and cluster_id and service):
        raise errors.Invalid(f"{text!r} is no member", hint="write cluster/service, or the address of an endpoint")
    return {"type": "oscar", "cluster_id": cluster_id, "service_name": service, "priority": priority}


@app.command()
def show(service: options.ServiceName, cluster: options.Cluster = None, as_json: options.Json = False) -> None:
    """Draw a service's federation, with how each member is."""
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager, screen.waiting(f"asking the members of {service}"):
        path = f"/system/federation/{segment(service)}"
        found = mapping(manager.read(path, what=f"service {service}", state="true"), manager.name)
    screen.data(found)
    state = {str(one["member"]): one for one in found.get("state") or []}
    members = found.get("members") or []
    screen.block(topology_drawing.draw(service, str(found.get("topology")), members, state))
    if members:
        _print_standing(screen, found.get("credentials") or {})
    else:
        screen.note(f"it has no members; add one with: hansa federation add {service} CLUSTER/SERVICE")


def _print_standing(screen: Screen, found: dict[str, Any]) -> None:
    """With which credentials the members are reached: a token that ended is why nothing is delegated any more."""
    state, since = str(found.get("state", "")), found.get("since")
    if state == "none" and not since:
        screen.line("credentials: no refresh token; users and passwords in its clusters are used")
    elif state:
        screen.line(f"credentials: {found.get('sentence')}")
        if state != "ok" and found.get("hint"):
            screen.warn(f"{state}{f' since {since}' if since else ''}; {found['hint']}")


@app.command()
def add(
    service: options.ServiceName,
    members: Members,
    priority: Priority = 0,
    parent: Annotated[str, typer.Option(help="In a tree: the member they hang on.")] = "",
    send_credentials: options.SendCredentials = False,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Add members; each gets its replica at once."""
    wanted = [{**_member(text, priority), **({"parent": parent} if parent else {})} for text in members]
    with session.opened(cluster) as manager:
        named = _profiles_of(wanted)
        withheld = [one for one in named if one.user]
        going = withheld if withheld and _needs_credentials(manager, service) else []
        lending.agree(going, service, manager.name, Screen(as_json=as_json), given=send_credentials, dry=False)
        clusters = {one.name: session.described(one, with_credentials=one in going) for one in named}
    _change(service, "POST", {"members": wanted, "clusters": clusters}, cluster, as_json)


@app.command()
def update(
    service: options.ServiceName,
    members: Members,
    priority: Priority = 0,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Give members another priority."""
    wanted = [_member(text, priority) for text in members]
    _change(service, "PUT", {"members": wanted, "update": wanted}, cluster, as_json)


@app.command()
def remove(
    service: options.ServiceName,
    members: Members,
    delete: Annotated[bool, typer.Option("--delete", help="Also delete their replicas.")] = False,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Take members out of a federation."""
    wanted = [_member(text, 0) for text in members]
    _change(service, "DELETE", {"members": wanted, "delete": delete}, cluster, as_json)


def _change(service: str, method: str, body: dict[str, Any], cluster: str | None, as_json: bool) -> None:
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager, screen.waiting(f"changing the federation of {service}"):
        path = f"/system/federation/{segment(service)}"
        answer = manager.call(method, path, body=body, what=f"service {service}", timeout=_SLOW)
        found = mapping(document(answer, manager.name), manager.name)
    screen.data(found)
    screen.block(topology_drawing.draw(service, str(found.get("topology")), found.get("members") or [], {}))
    for warning in found.get("warnings") or []:
        screen.warn(f"{warning['member']}: {warning['reason']} (it is told again later)")


def _profiles_of(members: list[dict[str, Any]]) -> list[profiles.Profile]:
    """Clusters we have a profile of are described from it."""
    known = profile_files.known(os.environ).known
    named = {str(member.get("cluster_id", "")) for member in members}
    return [known[name] for name in sorted(named) if name in known]


def _needs_credentials(manager: Manager, service: str) -> bool:
    """Without a refresh token of its own, members are reached with users and passwords; they go only to a manager that
    keeps them encrypted."""
    return manager.keeps_secrets() and _credentials(manager, "GET", service).get("state") == "none"
