"""Is a real part that a test needs on this machine? If not, who hears of it?

A test, or the fixture that starts the part, calls `require("postgres")` and gets the program's path. Where
the part is missing the test is left out and the session's summary names it. Where nothing may be missing
(`CI` or `HANSA_TEST_STRICT=1` is set) the test fails instead: a suite that quietly skips is no proof.
"""

import functools
import glob
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import pytest

PROBE_SECONDS = 20.0

# `ip` and `nft` are not on an ordinary user's PATH, PostgreSQL's server on nobody's.
_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
_POSTGRES_FOLDERS = "/usr/lib/postgresql/*/bin"


@dataclass(frozen=True, slots=True)
class Part:
    """A program, and where its being installed proves little, a short call that shows it works here."""

    program: str
    probe: tuple[str, ...] = ()


PARTS: Mapping[str, Part] = {
    # Containers and hardened kernels may have the program and forbid the namespaces it needs.
    "bubblewrap": Part("bwrap", ("--ro-bind", "/", "/", "--unshare-pid", "true")),
    "postgres": Part("postgres"),
    "node": Part("node", ("--version",)),
    "npm": Part("npm"),
    "iproute2": Part("ip", ("-Version",)),
    "nftables": Part("nft", ("--version",)),
    "podman": Part("podman", ("--version",)),
    "runc": Part("runc", ("--version",)),
    "busybox": Part("busybox"),
    "network-namespaces": Part("unshare", ("--net", "true")),
}


@dataclass(slots=True)
class Missing:
    """Parts that were asked for and not there, with the reason and how many tests asked."""

    reasons: dict[str, str] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)

    def note(self, part: str, reason: str) -> None:
        self.reasons[part] = reason
        self.asked[part] = self.asked.get(part, 0) + 1

    def lines(self) -> list[str]:
        return [f"{part}: {reason} ({self.asked[part]} tests)" for part, reason in sorted(self.reasons.items())]


missing = Missing()  # of this session; the closing summary reads it


def require(part: str) -> Path:
    """The part's program, or the end of the test."""
    if part not in PARTS:
        raise LookupError(f"no part named {part!r}; known are {', '.join(sorted(PARTS))}")
    program, trouble = look_for(part)
    if program is None:
        give_up(part, trouble)
    return program


def give_up(part: str, reason: str) -> NoReturn:
    """Ends the test for lack of a part; for fixtures that find out themselves that theirs does not work."""
    missing.note(part, reason)
    words = f"missing part {part}: {reason}"
    if strict():
        pytest.fail(f"{words}; nothing may be missing here (CI or HANSA_TEST_STRICT is set)", pytrace=False)
    pytest.skip(words, allow_module_level=True)


def strict() -> bool:
    return _is_set("CI") or _is_set("HANSA_TEST_STRICT")


@functools.cache
def look_for(part: str) -> tuple[Path | None, str]:
    """The program, or None and the reason. Asked once a session: installing takes place before the tests."""
    wanted = PARTS[part]
    # The newest server first; sorting by number, since "9" stands after "15" as text.
    servers = sorted(glob.glob(_POSTGRES_FOLDERS), key=lambda path: int(Path(path).parent.name), reverse=True)
    path = os.pathsep.join([*servers, os.environ.get("PATH", os.defpath), *_FOLDERS])
    found = shutil.which(wanted.program, path=path)
    if found is None:
        return None, f"no program `{wanted.program}`; `python3 scripts/setup.py test` adds it or says how"
    if not wanted.probe:
        return Path(found), ""
    try:
        shown = subprocess.run(
            [found, *wanted.probe],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"`{wanted.program}` is here and does not run: {error}"
    if shown.returncode != 0:
        words = shown.stderr.strip().splitlines()
        return (
            None,
            f"`{wanted.program}` is here and does not work: {words[-1] if words else shown.returncode}",
        )
    return Path(found), ""


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "").lower() not in {"", "0", "no", "false"}
