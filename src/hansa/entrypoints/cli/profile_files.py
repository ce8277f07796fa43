"""Which files hold the profiles a command sees, and which of them does a change go into?

The person's own file is the one place for credentials. Where a playground runs in this folder, what it wrote is read
in addition: its names come first, so that a tour never reaches a cluster that the person calls by the same name. Which
of all is in use there is the playground's to remember, and is forgotten with it.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from hansa.entrypoints.cli import profiles
from hansa.entrypoints.cli.profiles import Profile, Profiles
from hansa.kernel import errors

# Written by `make run` and gone when it stops: whoever stands beside a playground wants to speak to it.
_PLAYGROUND = Path(".playground") / "clusters.toml"


class Playgrounds(errors.Conflict):
    """The cluster or hub is a playground's, not one that was signed in to."""

    code = "cli.playgrounds"


def own(env: Mapping[str, str]) -> Path:
    """Where the person's file is: HANSA_PROFILES, else under XDG_CONFIG_HOME or ~/.config."""
    if env.get("HANSA_PROFILES"):
        return Path(env["HANSA_PROFILES"])
    base = env.get("XDG_CONFIG_HOME") or ""
    folder = Path(base) if Path(base).is_absolute() else Path.home() / ".config"
    return folder / "hansa" / "clusters.toml"


def known(env: Mapping[str, str]) -> Profiles:
    """All that a command can name."""
    mine = profiles.read(own(env))
    if (beside := _playground(env)) is not None:
        theirs = profiles.read(beside)
        mine = Profiles({**mine.known, **theirs.known}, theirs.current, theirs.hub)
    return mine.without_dangling_choice()


def remember(env: Mapping[str, str], profile: Profile) -> str:
    """Keeps the profile and uses it from now on; gives a warning if its name means, or meant, something else."""
    with profiles.editing(own(env)) as draft:
        former = draft.profiles.known.get(profile.name)
        draft.profiles = draft.profiles.with_profile(profile, current=True)
    use(env, profile.name)
    meant = known(env).get(profile.name)
    if meant.url != profile.url:
        return f"{profile.name} means {meant.url} here as long as the playground runs; --name gives another name"
    if former is not None and former.url != profile.url:
        return f"{profile.name} was {former.url} until now"
    return ""


def forget(env: Mapping[str, str], name: str) -> None:
    with profiles.editing(own(env)) as draft:
        if name not in draft.profiles.known and name in known(env).known:
            raise Playgrounds(
                f"{name} is the playground's, and goes with it", hint="name one of yours: hansa profile ls"
            )
        draft.profiles = draft.profiles.without(name)


def use(env: Mapping[str, str], name: str) -> None:
    chosen = known(env).using(name)
    with profiles.editing(_playground(env) or own(env)) as draft:
        draft.profiles = replace(draft.profiles, current=chosen.current, hub=chosen.hub)


def _playground(env: Mapping[str, str]) -> Path | None:
    return _PLAYGROUND if not env.get("HANSA_PROFILES") and _is_ours(_PLAYGROUND) else None


def _is_ours(path: Path) -> bool:
    """Nobody else's file may lead our commands, and our passwords, to a cluster of theirs."""
    try:
        return path.stat().st_uid == os.geteuid()
    except OSError:
        return False
