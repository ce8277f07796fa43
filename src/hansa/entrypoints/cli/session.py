"""Which cluster does this command speak to, and as whom?

`--cluster` wins, then HANSA_URL (with HANSA_TOKEN, or HANSA_USER and HANSA_PASSWORD), then HANSA_CLUSTER,
then the profile in use. Without HANSA_URL, credentials in the environment replace those of the chosen profile.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from hansa.entrypoints.cli import oidc, profile_files, profiles
from hansa.entrypoints.cli.client import Bearer, Manager
from hansa.entrypoints.cli.profiles import Profile
from hansa.kernel import errors


class NotSignedIn(errors.Unauthenticated):
    """No cluster was chosen."""

    code = "cli.not-signed-in"


def checked_url(url: str) -> str:
    """An address as we keep it."""
    try:
        parts = urlsplit(url.strip())
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError:
        port_is_fine = False
    if not port_is_fine or parts.scheme not in ("http", "https") or not parts.hostname:
        raise errors.Invalid(f"{url[:200]!r} is not an address", hint="write it as https://host or http://host:port")
    if parts.username is not None or parts.password is not None:
        raise errors.Invalid("the address holds credentials", hint="give --user and let hansa ask for the password")
    return f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")


def asked_with(cluster: str | None, env: Mapping[str, str]) -> str:
    """How the person said in so many words which cluster is meant, for this command or this shell; "" if they did
    not. Pure."""
    if cluster:
        return "-c"
    return next((name for name in ("HANSA_URL", "HANSA_CLUSTER") if env.get(name)), "")


def choose(known: profiles.Profiles, cluster: str | None, env: Mapping[str, str]) -> Profile:
    """The profile a command works with. Pure."""
    if cluster is None and env.get("HANSA_URL"):
        url = checked_url(env["HANSA_URL"])
        return with_credentials(Profile(name=urlsplit(url).netloc, url=url), env)
    name = cluster or env.get("HANSA_CLUSTER") or known.current
    if not name:
        clusters = ", ".join(one.name for one in known.known.values() if not one.is_hub)
        if clusters:
            raise NotSignedIn(
                f"no cluster is chosen (known: {clusters})", hint="choose one: hansa profile use NAME, or -c NAME"
            )
        raise NotSignedIn("no cluster is chosen", hint="sign in with: hansa login URL, or set HANSA_URL")
    found = known.get(name)
    if found.is_hub:
        raise errors.Invalid(f"{name} is a hub, and this asks a cluster", hint="name a cluster: hansa profile ls")
    # Credentials that came with HANSA_URL belong to that address and go nowhere else.
    return found if env.get("HANSA_URL") else with_credentials(found, env)


def with_credentials(profile: Profile, env: Mapping[str, str], prefix: str = "HANSA") -> Profile:
    """The profile with the credentials of the environment, where there are some."""
    bare = replace(profile, user="", password="", token="", refresh_token="", expires_at=0)
    if env.get(f"{prefix}_TOKEN"):
        return replace(bare, token=env[f"{prefix}_TOKEN"])
    if env.get(f"{prefix}_USER"):
        return replace(bare, user=env[f"{prefix}_USER"], password=env.get(f"{prefix}_PASSWORD", ""))
    return profile


def connect(profile: Profile, path: Path | None = None) -> Manager:
    """A client for the profile's cluster. `path` is where renewed tokens are kept; None: in memory."""
    auth: httpx.Auth | None = None
    if profile.refresh_token:
        auth = Bearer(Renewing(profile, path))
    elif profile.token:
        auth = Bearer(lambda: profile.token)
    elif profile.user:
        auth = httpx.BasicAuth(profile.user, profile.password)
    basic = isinstance(auth, httpx.BasicAuth)
    return Manager(
        profile.url, auth, name=profile.name, verify=profile.verify, basic=basic, connect_to=profile.connect_to
    )


def opened(cluster: str | None = None) -> Manager:
    """The chosen cluster's manager, to be used in a `with`."""
    path = profile_files.own(os.environ)
    return connect(choose(profile_files.known(os.environ), cluster, os.environ), path)


class Renewing:
    """Gives the access token of a profile, bought anew when it runs out."""

    def __init__(self, profile: Profile, path: Path | None) -> None:
        self._profile = profile
        self._path = path

    def __call__(self) -> str:
        if not oidc.is_fresh(self._profile, time.time()):
            self._profile = self._renewed()
        return self._profile.token

    def _renewed(self) -> Profile:
        if self._path is None:
            return oidc.renew(self._profile, time.time())
        # Under the lock: a refresh token that rotates may be spent once only.
        with profiles.editing(self._path) as draft:
            stored = draft.profiles.known.get(self._profile.name)
            if stored is None or stored.url != self._profile.url or not stored.refresh_token:
                return oidc.renew(self._profile, time.time())
            if not oidc.is_fresh(stored, time.time()):
                stored = oidc.renew(stored, time.time())
                draft.profiles = draft.profiles.with_profile(stored)
            return stored


def described(profile: Profile, *, with_credentials: bool = True) -> dict[str, Any]:
    """A cluster as a definition names it. Credentials go along only to a manager that keeps them encrypted."""
    shown = with_credentials and bool(profile.user)
    return {
        "endpoint": profile.url,
        "ssl_verify": profile.verify,
        "auth_user": profile.user if shown else "",
        "auth_password": profile.password if shown else "",
    }
