"""How do others learn where the servers are? `info.json` for programs, `clusters.toml` for the command line.

Both are private, appear whole or not at all, and go when the playground stops.
"""

import json
import os
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path

from hansa.entrypoints.cli import profiles
from hansa.entrypoints.playground.hub import HubAddress
from hansa.entrypoints.playground.member import Address


def write(folder: Path, addresses: Collection[Address], hub: HubAddress) -> None:
    # Whoever sees info.json may use the command line at once, so it comes last.
    _write_profiles(folder / "clusters.toml", addresses, hub)
    info = folder / "info.json"
    unfinished = folder / "info.json.new"
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        told = {"clusters": [asdict(address) for address in addresses], "hub": asdict(hub)}
        json.dump(told, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(info)


def _write_profiles(path: Path, addresses: Collection[Address], hub: HubAddress) -> None:
    known = [_profile(one.id, "manager", one) for one in addresses] + [_profile("hub", "hub", hub)]
    with profiles.editing(path) as draft:
        for one in known:
            draft.profiles = draft.profiles.with_profile(one)


def _profile(name: str, role: str, at: Address | HubAddress) -> profiles.Profile:
    return profiles.Profile(name=name, url=at.url, role=role, user=at.admin_user, password=at.admin_password)


def remove(folder: Path) -> None:
    for name in ("info.json", "info.json.new", "clusters.toml", "clusters.lock"):
        (folder / name).unlink(missing_ok=True)
