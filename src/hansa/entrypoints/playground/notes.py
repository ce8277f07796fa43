"""How do others learn where the clusters are? `info.json` for programs, `clusters.toml` for the command line.

Both are private, appear whole or not at all, and go when the playground stops.
"""

import json
import os
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path

from hansa.entrypoints.cli import profiles
from hansa.entrypoints.playground.member import Address


def write(folder: Path, addresses: Collection[Address]) -> None:
    # Whoever sees info.json may use the command line at once, so it comes last.
    _write_profiles(folder / "clusters.toml", addresses)
    info = folder / "info.json"
    unfinished = folder / "info.json.new"
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump({"clusters": [asdict(address) for address in addresses]}, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(info)


def _write_profiles(path: Path, addresses: Collection[Address]) -> None:
    with profiles.editing(path) as draft:
        for one in addresses:
            profile = profiles.Profile(name=one.id, url=one.url, user=one.admin_user, password=one.admin_password)
            draft.profiles = draft.profiles.with_profile(profile)


def remove(folder: Path) -> None:
    for name in ("info.json", "info.json.new", "clusters.toml", "clusters.lock"):
        (folder / name).unlink(missing_ok=True)
