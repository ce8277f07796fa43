"""Which clusters and hubs does this person know, and how do they sign in? Kept in one TOML file only they can read.

`profile_files.py` says which file that is, and what is read besides. The file is replaced as a whole under a
lock, so two commands at once lose nothing.
"""

import fcntl
import json
import os
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from hansa.kernel import errors


class BadProfiles(errors.Invalid):
    """The file of known clusters cannot be used."""

    code = "cli.profiles"


class NoProfile(errors.NotFound):
    """There is no cluster of this name among those known here."""

    code = "cli.no-profile"


@dataclass(frozen=True, slots=True)
class Profile:
    """One cluster or hub and the way in: Basic, a bearer token, or a refresh token that buys bearer tokens."""

    name: str
    url: str
    role: str = "manager"  # or "hub"
    verify: bool = True
    connect_to: str = ""  # instead of the host in `url`
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    refresh_token: str = field(default="", repr=False)
    issuer: str = ""
    client_id: str = ""
    expires_at: int = 0  # when `token`, bought with the refresh token, stops working

    @property
    def is_hub(self) -> bool:
        return self.role == "hub"

    @property
    def sign_in(self) -> str:
        if self.refresh_token:
            return "refresh token"
        if self.token:
            return "token"
        return f"user {self.user}" if self.user else "none"


@dataclass(frozen=True, slots=True)
class Profiles:
    """Clusters and hubs by name; of each kind one may be in use."""

    known: Mapping[str, Profile] = field(default_factory=dict)
    current: str = ""
    hub: str = ""

    def get(self, name: str) -> Profile:
        if name not in self.known:
            names = ", ".join(self.known) or "none yet"
            raise NoProfile(
                f"no cluster {name!r} is known here (known: {names})",
                hint="sign in with: hansa login URL --name NAME",
            )
        return self.known[name]

    def with_profile(self, profile: Profile, *, current: bool = False) -> "Profiles":
        former = self.known.get(profile.name)
        kept = self if former is None or former.is_hub == profile.is_hub else self.without(profile.name)
        changed = Profiles({**self.known, profile.name: profile}, kept.current, kept.hub)
        in_use = kept.hub if profile.is_hub else kept.current
        return changed.using(profile.name) if current or not in_use else changed

    def without(self, name: str) -> "Profiles":
        self.get(name)
        left = {key: value for key, value in self.known.items() if key != name}
        return Profiles(left, "" if self.current == name else self.current, "" if self.hub == name else self.hub)

    def using(self, name: str) -> "Profiles":
        return replace(self, hub=name) if self.get(name).is_hub else replace(self, current=name)

    def without_dangling_choice(self) -> "Profiles":
        """Only what is known, and of the right kind, is in use."""
        clusters = {name for name, one in self.known.items() if not one.is_hub}
        hubs = self.known.keys() - clusters
        return replace(
            self, current=self.current if self.current in clusters else "", hub=self.hub if self.hub in hubs else ""
        )


def load(path: Path) -> Profiles:
    return read(path).without_dangling_choice()


def read(path: Path) -> Profiles:
    """As it is written: what is in use there may be known from another file."""
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Profiles()
    except (OSError, ValueError) as error:
        raise BadProfiles(f"cannot read {path}: {error}", hint="repair the file or move it away") from None
    known = {}
    for name, entry in tree.get("clusters", {}).items():
        if not isinstance(entry, dict) or not isinstance(entry.get("url"), str):
            raise BadProfiles(f"{path}: cluster {name} has no url", hint=f"hansa profile rm {name}, then sign in again")
        known[name] = _profile(name, entry)
    current, hub = tree.get("current"), tree.get("hub")
    return Profiles(known, current if isinstance(current, str) else "", hub if isinstance(hub, str) else "")


def _profile(name: str, entry: Mapping[str, Any]) -> Profile:
    """Only fields of the right type count; a newer program may have written others."""
    wanted = {item.name: type(item.default) for item in fields(Profile) if item.name not in ("name", "url")}
    given = {key: entry[key] for key, kind in wanted.items() if type(entry.get(key)) is kind}
    return Profile(name=name, url=entry["url"], **given)


@contextmanager
def editing(path: Path) -> Iterator["Draft"]:
    """The profiles to change; written back when the block ends well. One editor at a time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise BadProfiles(
            f"cannot write {path}: {error.strerror}", hint="set HANSA_PROFILES to another place"
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        draft = Draft(read(path))
        yield draft
        _write(path, draft.profiles)
    finally:
        os.close(lock)


@dataclass(slots=True)
class Draft:
    profiles: Profiles


def _write(path: Path, profiles: Profiles) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".clusters-")  # mkstemp makes it 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(_toml(profiles).encode())
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except (OSError, UnicodeEncodeError) as error:
        Path(name).unlink(missing_ok=True)
        raise BadProfiles(f"cannot write {path}: {error}") from None


def _toml(profiles: Profiles) -> str:
    lines = [f"current = {_quoted(profiles.current)}"]
    if profiles.hub:
        lines.append(f"hub = {_quoted(profiles.hub)}")
    for profile in profiles.known.values():
        lines += ["", f"[clusters.{_quoted(profile.name)}]", f"url = {_quoted(profile.url)}"]
        for item in fields(Profile):
            value = getattr(profile, item.name)
            if item.name in ("name", "url") or value == item.default:
                continue
            lines.append(f"{item.name} = {_quoted(value) if isinstance(value, str) else json.dumps(value)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    # A JSON string is a TOML basic string, but for DEL, which TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
