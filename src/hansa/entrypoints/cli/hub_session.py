"""Which hub does this command speak to, and as whom?

`--hub` wins, then HANSA_HUB, then the hub in use (`hansa login URL --hub`, `hansa profile use`). Either may be a known
hub's name or an address. HANSA_HUB_TOKEN, or HANSA_HUB_USER with HANSA_HUB_PASSWORD, belong to HANSA_HUB; without it
they replace the credentials of the chosen hub.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from hansa.client import HubClient
from hansa.entrypoints.cli import profile_files, profiles, session
from hansa.entrypoints.cli.profiles import Profile
from hansa.kernel import errors

_PREFIX = "HANSA_HUB"


class NoHub(errors.Unauthenticated):
    """No hub was chosen."""

    code = "cli.no-hub"


def choose(known: profiles.Profiles, hub: str | None, env: Mapping[str, str]) -> Profile:
    """The profile a command works with. Pure."""
    named = hub or env.get(_PREFIX) or known.hub
    if not named:
        raise NoHub("no hub is chosen", hint="sign in with: hansa login URL --hub, or set HANSA_HUB")
    found = _found(known, named)
    return found if hub and env.get(_PREFIX) else session.with_credentials(found, env, _PREFIX)


def _found(known: profiles.Profiles, named: str) -> Profile:
    if "://" not in named:
        found = known.get(named)
        if not found.is_hub:
            raise errors.Invalid(f"{named} is a cluster, and this asks a hub", hint="name a hub: hansa profile ls")
        return found
    url = session.checked_url(named)
    for one in known.known.values():
        if one.is_hub and one.url == url:
            return one
    return Profile(name=urlsplit(url).netloc, url=url, role="hub")


def connect(profile: Profile, path: Path | None = None) -> HubClient:
    """A client for the profile's hub. `path` is where renewed tokens are kept; None: in memory."""
    token = session.Renewing(profile, path) if profile.refresh_token else profile.token
    return HubClient(profile.url, user=profile.user, password=profile.password, token=token, verify=profile.verify)


def opened(hub: str | None = None) -> HubClient:
    """The chosen hub, to be used in a `with`."""
    path = profile_files.own(os.environ)
    return connect(choose(profile_files.known(os.environ), hub, os.environ), path)
