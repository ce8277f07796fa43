"""With which settings does each server start? The person's `HANSA_*` variables, and what is each one's own."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from hansa import settings
from hansa.entrypoints.playground.plan import HubPlace, Place
from hansa.settings import BadSetting, Settings

OWN = frozenset(
    {
        "HANSA_ROLE",
        "HANSA_DATA",
        "HANSA_CLUSTER__ID",
        "HANSA_HTTP__PORT",
        "HANSA_SANDBOX__UID_BASE",
        "HANSA_ADMIN__PASSWORD",
        "HANSA_HUB__PORT",
        "HANSA_HUB__MEMBERS_PORT",
        "HANSA_HUB__MEMBERS_URL",
        "HANSA_MEMBERSHIP__HUB",
        "HANSA_MEMBERSHIP__TOKEN",
    }
)
"""What every server has for itself, so that a value for all of them makes no sense."""
# Where the towns are that gave the clusters their names; a person's own words for all of them win.
_TOWNS = {
    "lubeck": ("Lübeck", "baltic-west", "53.8655", "10.6866"),
    "visby": ("Visby", "baltic-central", "57.6348", "18.2948"),
    "riga": ("Riga", "baltic-east", "56.9496", "24.1052"),
}
_NOT_FOR_ALL = ("HANSA_DATABASE__URL", "HANSA_CLUSTER__PUBLIC_URL")


def left_out(env: Mapping[str, str]) -> list[str]:
    """Variables of the person that no server gets."""
    return sorted(OWN & env.keys())


def for_place(place: Place, peers: Sequence[Place], env: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a manager, which trusts the others of its playground."""
    trusted = {peer.id: {"endpoint": f"http://127.0.0.1:{peer.port}"} for peer in peers if peer.id != place.id}
    ours = {
        "HANSA_ROLE": "manager",
        "HANSA_DATA": str(place.folder),
        "HANSA_CLUSTER__ID": place.id,
        "HANSA_HTTP__PORT": str(place.port),
        "HANSA_SANDBOX__UID_BASE": str(place.uid_base),
    }
    defaults = {"HANSA_FEDERATION__CLUSTERS": json.dumps(trusted), **_town(place.id)}
    return _COMMON | defaults | _theirs(env) | _of_one(place.id, env) | ours


def for_hub(place: HubPlace, env: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of the hub."""
    ours = {
        "HANSA_ROLE": "hub",
        "HANSA_DATA": str(place.folder),
        "HANSA_HUB__PORT": str(place.port),
        "HANSA_HUB__MEMBERS_PORT": str(place.members_port),
    }
    return _COMMON | _theirs(env) | ours


def _of_one(name: str, env: Mapping[str, str]) -> dict[str, str]:
    """What HANSA_PLAYGROUND says of this cluster: JSON, settings by their dotted names for each cluster's id."""
    try:
        given = json.loads(env.get("HANSA_PLAYGROUND") or "{}").get(name, {}).items()
    except (ValueError, AttributeError):
        raise BadSetting(
            "HANSA_PLAYGROUND is not JSON with settings for each cluster", hint='{"riga": {"jobs.cpu": "2"}}'
        ) from None
    return {
        "HANSA_" + key.upper().replace(".", "__"): value if isinstance(value, str) else json.dumps(value)
        for key, value in given
    }


_COMMON = {"HANSA_LOG__FORM": "text"}


def _town(name: str) -> dict[str, str]:
    names = ("NAME", "REGION", "LATITUDE", "LONGITUDE")
    return {f"HANSA_MEMBERSHIP__{key}": value for key, value in zip(names, _TOWNS.get(name, ()), strict=False)}


def _theirs(env: Mapping[str, str]) -> dict[str, str]:
    theirs = {name: value for name, value in env.items() if name not in OWN}
    if theirs.get("HANSA_CONFIG"):
        theirs["HANSA_CONFIG"] = str(Path(theirs["HANSA_CONFIG"]).absolute())  # servers run in folders of their own
    return theirs


def checked(env: Mapping[str, str]) -> Settings:
    """A server's settings, read here too so that a wrong one is told in one line before anything starts."""
    for name in _NOT_FOR_ALL:
        if env.get(name):
            raise BadSetting(
                f"{name} would be the same for all three clusters", hint="unset it, or run one `hansa server` with it"
            )
    return settings.load(env=env)
