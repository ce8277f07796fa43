"""`hansa login` and `hansa logout`: remember a cluster or a hub and how to sign in there, or forget it."""

import ipaddress
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated
from urllib.parse import urlsplit

import typer

from hansa.entrypoints.cli import hub_session, oidc, options, profile_files, session, usage
from hansa.entrypoints.cli.profiles import Profile
from hansa.entrypoints.cli.screen import Screen
from hansa.kernel import errors


def login(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="The manager's, or hub's, address, such as https://oscar.example.")
    ],
    *,
    hub: Annotated[bool, typer.Option("--hub", help="It is a hub; commands that ask a hub then ask this one.")] = False,
    name: Annotated[
        str | None,
        typer.Option("--name", "-n", "--cluster", "-c", metavar="NAME", help="What to call it here."),
    ] = None,
    user: Annotated[str | None, typer.Option("--user", "-u", help="Basic sign-in as USER; else HANSA_USER.")] = None,
    password_stdin: Annotated[
        bool,
        typer.Option(
            "--password-stdin",
            help="Read the password from stdin; else HANSA_PASSWORD, else it is asked for.",
        ),
    ] = False,
    token: Annotated[
        str | None,
        typer.Option("--token", help="Sign in with an access token; - reads it from stdin; else HANSA_TOKEN."),
    ] = None,
    refresh_token: Annotated[
        str | None,
        typer.Option("--refresh-token", help="Buy access tokens with this refresh token; - reads it from stdin."),
    ] = None,
    issuer: Annotated[str, typer.Option("--issuer", metavar="URL", help="Who issued the refresh token.")] = "",
    client_id: Annotated[str, typer.Option("--client-id", help="The client the refresh token was issued to.")] = "",
    connect_to: Annotated[
        str,
        typer.Option(
            "--connect-to",
            metavar="HOST",
            help="Connect to HOST instead of the one in URL, also for a store at that address; ports stay.",
        ),
    ] = "",
    insecure: Annotated[bool, typer.Option("--insecure", help="Accept any certificate.")] = False,
    check: Annotated[bool, typer.Option(help="Try the credentials before storing them.")] = True,
    as_json: options.Json = False,
) -> None:
    """Sign in to a cluster, or to a hub, and use it from now on."""
    screen = Screen(as_json=as_json)
    address = session.checked_url(url)
    parts = urlsplit(address)
    if hub and connect_to:
        raise typer.BadParameter("give the hub's URL as it is reached from here", param_hint="--connect-to")
    if parts.scheme == "http" and not _is_this_machine(connect_to or parts.hostname or ""):
        screen.warn(f"{address} is not https: credentials travel in the clear")
    called = name or (parts.hostname or "") + (f"-{parts.port}" if parts.port else "")
    profile = Profile(
        name=called, url=address, role="hub" if hub else "manager", verify=not insecure, connect_to=connect_to
    )
    if refresh_token:
        if not issuer or not client_id:
            raise typer.BadParameter("it needs --issuer and --client-id too", param_hint="--refresh-token")
        profile = replace(profile, refresh_token=_given(refresh_token), issuer=issuer, client_id=client_id)
    elif token or (not user and os.environ.get("HANSA_TOKEN")):
        profile = replace(profile, token=_given(token or os.environ["HANSA_TOKEN"]))
    else:
        who = user or os.environ.get("HANSA_USER") or _ask("User", secret=False)
        profile = replace(profile, user=who, password=_password(password_stdin))
    if check:
        if profile.refresh_token:
            profile = oidc.renew(profile, time.time())  # may rotate the refresh token, so keep what comes back
        # With the access token alone: a second renewal here would spend a refresh token nobody keeps.
        _try(replace(profile, refresh_token=""))
    if warning := profile_files.remember(os.environ, profile):
        screen.warn(warning)
    screen.data({"cluster": called, "url": address, "role": profile.role, "sign_in": profile.sign_in})
    what = f"the hub {called}" if hub else called
    screen.line(f"signed in to {what} ({address}), {profile.sign_in}")


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _try(profile: Profile) -> None:
    """Raises if it does not let us in, or is not what it was taken for."""
    ask, ask_as_other = (_ask_hub, _ask_manager) if profile.is_hub else (_ask_manager, _ask_hub)
    try:
        ask(profile)
    except errors.HansaError as error:
        if error.kind is errors.Kind.UNAUTHENTICATED:
            raise errors.Unauthenticated(error.message, hint=_hint(profile, error)) from None
        if error.kind in (errors.Kind.NOT_FOUND, errors.Kind.INTERNAL) and _answers(ask_as_other, profile):
            if profile.is_hub:
                raise errors.Invalid(f"{profile.url} is a cluster's manager", hint="leave out --hub") from None
            raise errors.Invalid(f"{profile.url} is a hub", hint="add --hub") from None
        raise


def _hint(profile: Profile, refused: errors.HansaError) -> str:
    """What is said of a token fits; "sign in" would be no help to somebody who does just that."""
    if profile.token and refused.hint and "hansa login" not in refused.hint:
        return refused.hint
    return "check the user and the password, or the token"


def _ask_hub(profile: Profile) -> None:
    with hub_session.connect(profile) as hub:
        hub.federation_status()


def _ask_manager(profile: Profile) -> None:
    with session.connect(profile) as manager:
        manager.read("/system/info")


def _answers(ask: Callable[[Profile], None], profile: Profile) -> bool:
    """Whether somebody of this kind is there, whatever they think of the credentials."""
    try:
        ask(profile)
    except errors.HansaError as error:
        return error.kind in (errors.Kind.UNAUTHENTICATED, errors.Kind.FORBIDDEN)
    return True


def logout(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Which; else the one in use.")] = None,
    as_json: options.Json = False,
) -> None:
    """Forget a cluster or a hub and its credentials."""
    screen = Screen(as_json=as_json)
    chosen = name or os.environ.get("HANSA_CLUSTER") or profile_files.known(os.environ).current
    if not chosen:
        raise session.NotSignedIn("no cluster is in use", hint="name one: hansa logout NAME")
    profile_files.forget(os.environ, chosen)
    screen.data({"cluster": chosen})
    screen.line(f"forgot {chosen}")


def _given(value: str) -> str:
    return sys.stdin.readline().strip() if value == "-" else value


def _password(from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    return os.environ.get("HANSA_PASSWORD") or _ask("Password", secret=True)


def _ask(what: str, *, secret: bool) -> str:
    usage.require_terminal(what, "--password-stdin, or set HANSA_PASSWORD" if secret else "--user or --token")
    return str(typer.prompt(what, hide_input=secret, err=True))


def register(app: typer.Typer) -> None:
    app.command()(login)
    app.command()(logout)
