"""With which settings does each manager start? The person's `HANSA_*` variables, and what is each cluster's own."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from hansa import settings
from hansa.entrypoints.playground.plan import Place
from hansa.settings import BadSetting, Settings

OWN = frozenset(
    {"HANSA_DATA", "HANSA_CLUSTER__ID", "HANSA_HTTP__PORT", "HANSA_SANDBOX__UID_BASE", "HANSA_ADMIN__PASSWORD"}
)
"""What every cluster has for itself, so that a value for all of them makes no sense."""
_NOT_FOR_ALL = ("HANSA_DATABASE__URL", "HANSA_CLUSTER__PUBLIC_URL")


def left_out(env: Mapping[str, str]) -> list[str]:
    """Variables of the person that no manager gets."""
    return sorted(OWN & env.keys())


def for_place(place: Place, peers: Sequence[Place], env: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a manager, which trusts the others of its playground."""
    trusted = {peer.id: {"endpoint": f"http://127.0.0.1:{peer.port}"} for peer in peers if peer.id != place.id}
    ours = {
        "HANSA_DATA": str(place.folder),
        "HANSA_CLUSTER__ID": place.id,
        "HANSA_HTTP__PORT": str(place.port),
        "HANSA_SANDBOX__UID_BASE": str(place.uid_base),
    }
    theirs = {name: value for name, value in env.items() if name not in OWN}
    if theirs.get("HANSA_CONFIG"):
        theirs["HANSA_CONFIG"] = str(Path(theirs["HANSA_CONFIG"]).absolute())  # managers run in folders of their own
    defaults = {"HANSA_LOG__FORM": "text", "HANSA_FEDERATION__CLUSTERS": json.dumps(trusted)}
    return defaults | theirs | ours


def checked(env: Mapping[str, str]) -> Settings:
    """The manager's settings, read here too so that a wrong one is told in one line before anything starts."""
    for name in _NOT_FOR_ALL:
        if env.get(name):
            raise BadSetting(
                f"{name} would be the same for all three clusters", hint="unset it, or run one `hansa server` with it"
            )
    return settings.load(env=env)
