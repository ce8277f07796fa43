"""What does this checkout need before it can run or be tested, and is it there?

Called by the Makefile as `python3 scripts/setup.py run|test|check`, with nothing but the standard library.
It makes `.venv` from the locked requirements, adds the Debian packages that are missing where it may, and
names exactly what it could not add. Nothing else outside the checkout changes. A stamp in `.venv` remembers what was
installed, so the second time takes no time.

Set `HANSA_SETUP_PACKAGES=no` to keep it from installing Debian packages. `HANSA_SETUP_KUBERNETES=yes` builds a
Kubernetes for the tests, and `HANSA_SETUP_MINIO=yes` a MinIO, once, into the user's cache: that takes as long as all
tests together, so it is not done unasked. `HANSA_SETUP_PODMAN=yes` adds podman's packages. Without them, tests that
need them are left out.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TextIO

OLDEST_PYTHON = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
BUILD_LOCK = REQUIREMENTS / "build.txt"  # pip and setuptools: what installs everything else
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / "hansa-setup.json"
CACHE = ROOT / ".cache"
PACKAGES_LOG = CACHE / "packages.log"

DOWNLOAD_SECONDS = 1800
BUILD_SECONDS = 3600
PROBE_SECONDS = 60

# An ordinary user's PATH leaves out where `ip` and `nft` live; everybody's leaves out PostgreSQL's server.
EXTRA_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
POSTGRES_FOLDERS = "/usr/lib/postgresql/*/bin"


@dataclass(frozen=True)
class Program:
    """A program from outside Python, the Debian package that brings it, and what is lost without it."""

    name: str
    package: str
    loss: str
    if_asked: str = ""  # the variable that asks for it, of a program that few need


_PODMAN = "tests with podman are left out"
BUBBLEWRAP = Program("bwrap", "bubblewrap", "services cannot run in a sandbox")


@dataclass(frozen=True)
class Profile:
    """What one purpose needs. `covers` names the purposes that are served by the same installation."""

    lock: Path
    programs: tuple[Program, ...]
    covers: tuple[str, ...]


PROFILES = {
    "run": Profile(REQUIREMENTS / "run.txt", (BUBBLEWRAP,), ("run",)),
    "test": Profile(
        REQUIREMENTS / "dev.txt",
        (
            BUBBLEWRAP,
            Program("postgres", "postgresql", "tests on a real PostgreSQL are left out"),
            Program("node", "nodejs", "tests with a real sign-in provider are left out"),
            Program("npm", "npm", "tests with a real sign-in provider are left out"),
            Program("ip", "iproute2", "tests that cut links between clusters are left out"),
            Program("nft", "nftables", "tests that cut links between clusters are left out"),
            Program("podman", "podman", _PODMAN, "HANSA_SETUP_PODMAN"),
            Program("runc", "runc", _PODMAN, "HANSA_SETUP_PODMAN"),
            Program("busybox", "busybox-static", _PODMAN, "HANSA_SETUP_PODMAN"),
        ),
        ("run", "test", "check"),
    ),
    "check": Profile(REQUIREMENTS / "dev.txt", (), ("run", "test", "check")),
}

# One script for root, so that what it puts into the system for the time of the installation leaves with it:
# a package we bring starts no service, and PostgreSQL makes no server of its own that would start at boot.
INSTALL_SCRIPT = r"""
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d
clusters=/etc/postgresql-common/createcluster.d
made_policy= made_clusters=
tidy() {
    if [ -n "$made_policy" ]; then rm -f "$policy"; fi
    if [ -n "$made_clusters" ]; then
        rm -f "$clusters/hansa-setup.conf"
        rmdir --ignore-fail-on-non-empty "$clusters" 2>/dev/null
    fi
}
trap tidy EXIT
trap 'exit 130' INT TERM HUP
if [ ! -e "$policy" ]; then
    made_policy=yes
    printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy"
fi
case " $* " in *" postgresql "*)
    made_clusters=yes
    mkdir -p "$clusters" && printf 'create_main_cluster = false\n' >"$clusters/hansa-setup.conf"
esac
get() { apt-get -qq -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 "$@" </dev/null; }
bring() { get install -y --no-install-recommends "$@"; }
if ! ls /var/lib/apt/lists/*_Packages* >/dev/null 2>&1; then
    get update; bring "$@"; exit
fi
# Lists may be too old to know today's file names: only then is a new look at them worth its time.
bring "$@" || { get update && bring "$@"; }
"""


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in PROFILES:
        print(f"usage: python3 scripts/setup.py {'|'.join(PROFILES)}", file=sys.stderr)
        return 2
    use_new_enough_python()
    refuse_linked_environment()
    purpose = arguments[0]
    profile = PROFILES[purpose]
    began = time.monotonic()
    with only_one_setup():
        missing = provide_programs(profile.programs)
        changed = provide_environment(purpose, profile)
    if purpose == "test":
        build_parts()
    for program in missing:
        say(f"missing: {program.name} (Debian package {program.package}); {program.loss}")
    if missing:
        packages = " ".join(sorted({program.package for program in missing}))
        say(f"to add what is missing: sudo apt-get install --no-install-recommends {packages}")
    if changed:
        say(f"ready to {purpose} after {time.monotonic() - began:.0f} s")
    return 0


def say(line: str) -> None:
    print(f"setup: {line}", flush=True)


def asked_for(variable: str) -> bool:
    return os.environ.get(variable) == "yes"


def fail(line: str, hint: str) -> NoReturn:
    say(line)
    say(hint)
    sys.exit(1)


def use_new_enough_python() -> None:
    """Continues under a newer Python when `python3` is too old and another one is installed beside it."""
    if sys.version_info >= OLDEST_PYTHON:
        return
    for minor in range(20, OLDEST_PYTHON[1] - 1, -1):
        newer = shutil.which(f"python3.{minor}")
        if newer is not None:
            os.execv(newer, [newer, *sys.argv])  # noqa: S606  the program is a Python that PATH names
    fail(
        "Hansa needs Python 3.11 or newer; this is " + sys.version.split()[0],
        "install a newer Python and call: make PYTHON=python3.11 …",
    )


def refuse_linked_environment() -> None:
    """`venv --clear`, and pip, would follow the link and change an environment that others use."""
    if VENV.is_symlink():
        fail(
            f".venv is a link to {VENV.readlink()}, and setup would change what lies there",
            "remove the link, and call the same command again: rm .venv",
        )


@contextlib.contextmanager
def only_one_setup() -> Iterator[None]:
    """`make run` and `make test` in two terminals must not write into one environment at once."""
    CACHE.mkdir(exist_ok=True)
    with open(CACHE / "setup.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another setup of this checkout")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# --- programs from Debian packages ---


def provide_programs(programs: Sequence[Program]) -> list[Program]:
    """Installs what is missing where that is possible, and answers what is missing still."""
    wanted = [program for program in programs if not program.if_asked or asked_for(program.if_asked)]
    missing = [program for program in wanted if find_program(program.name) is None]
    if missing:
        install_packages([program.package for program in missing])
    return [program for program in missing if find_program(program.name) is None]


def find_program(name: str) -> str | None:
    folders = [os.environ.get("PATH", os.defpath), *EXTRA_FOLDERS, *sorted(glob.glob(POSTGRES_FOLDERS))]
    return shutil.which(name, path=os.pathsep.join(folders))


def install_packages(packages: Sequence[str]) -> bool:
    become_root = way_to_root()
    if become_root is None:
        return False
    say(f"installing Debian packages: {' '.join(packages)}")
    command = [*become_root, "sh", "-c", INSTALL_SCRIPT, "sh"]
    with open(PACKAGES_LOG, "w") as log:
        if succeeds([*command, *packages], log=log):
            return True
        # One package that this release does not have must not cost us the others.
        outcomes = [succeeds([*command, package], log=log) for package in packages if len(packages) > 1]
    if outcomes and all(outcomes):
        return True
    say(f"not all could be installed; apt's words are in {PACKAGES_LOG.relative_to(ROOT)}")
    return False


def way_to_root() -> list[str] | None:
    """The words to put before a command that needs root; None where we may not or there is no apt."""
    if os.environ.get("HANSA_SETUP_PACKAGES") == "no" or shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and succeeds(["sudo", "-n", "true"], seconds=PROBE_SECONDS, quiet=True):
        return ["sudo", "-n"]
    return None


# --- the virtual environment ---


def provide_environment(purpose: str, profile: Profile) -> bool:
    """Whether anything had to be installed."""
    stamp = read_stamp()
    runs = environment_runs()
    moved = stamp.get("root", str(ROOT)) != str(ROOT)  # a moved environment's scripts still name the old place
    if runs and not moved and stamp.get(purpose) == digest(PROFILES[purpose]):
        return False
    if not runs or moved:
        make_environment()
    STAMP.unlink(missing_ok=True)  # an interrupted installation must not look finished
    say(f"installing the locked packages of {profile.lock.relative_to(ROOT)}")
    pip_install("--require-hashes", "-r", str(BUILD_LOCK))
    pip_install("--require-hashes", "-r", str(profile.lock))
    pip_install("--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    write_stamp({"root": str(ROOT)} | {name: digest(PROFILES[name]) for name in profile.covers})
    return True


def digest(profile: Profile) -> str:
    inputs = (BUILD_LOCK, profile.lock, ROOT / "pyproject.toml")  # the last names the commands to install
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in inputs)).hexdigest()


def read_stamp() -> dict[str, str]:
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def write_stamp(stamp: dict[str, str]) -> None:
    beside = STAMP.with_suffix(".new")
    beside.write_text(json.dumps(stamp))
    beside.replace(STAMP)


def environment_runs() -> bool:
    """False also after the system's Python became another version: pip is then not where it looks."""
    probe = f"import sys, pip; sys.exit(sys.version_info < {OLDEST_PYTHON})"
    return VENV_PYTHON.exists() and succeeds([str(VENV_PYTHON), "-c", probe], seconds=PROBE_SECONDS, quiet=True)


def make_environment() -> None:
    # Inside another environment, or this very one, its base is the Python to build on.
    python = getattr(sys, "_base_executable", None) or sys.executable
    version = ".".join(str(part) for part in sys.version_info[:3])
    say(f"making .venv with Python {version}")
    with_pip = [python, "-m", "venv", "--clear", str(VENV)]
    if succeeds(with_pip, seconds=PROBE_SECONDS * 5, quiet=True):
        return
    # Debian splits the part of venv that brings pip into a package of its own.
    if install_packages(["python3-venv"]) and succeeds(with_pip, seconds=PROBE_SECONDS * 5, quiet=True):
        return
    if succeeds([*with_pip, "--without-pip"], seconds=PROBE_SECONDS * 5) and bring_pip(python):
        return
    shutil.rmtree(VENV, ignore_errors=True)
    fail(
        f"{python} cannot make a virtual environment with pip in it",
        "install it and try again: sudo apt-get install python3-venv",
    )


def bring_pip(python: str) -> bool:
    """Fills an environment that was made without pip, from a pip or a pip wheel that the system has."""
    locked = ["install", "--quiet", "--no-input", "--require-hashes", "-r", str(BUILD_LOCK)]
    has_pip = succeeds([python, "-m", "pip", "--version"], seconds=PROBE_SECONDS, quiet=True)
    if has_pip and succeeds([python, "-m", "pip", "--python", str(VENV_PYTHON), *locked]):
        return True
    for wheel in sorted(glob.glob("/usr/share/python-wheels/pip-*.whl"), reverse=True):
        if succeeds([str(VENV_PYTHON), f"{wheel}/pip", *locked]):
            return True
    return False


def pip_install(*arguments: str) -> None:
    command = [
        str(VENV_PYTHON),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-input",
        "--disable-pip-version-check",
    ]
    # As root pip warns of what is no danger here: the environment is our own.
    if not succeeds([*command, "--root-user-action=ignore", *arguments]):
        fail(
            "pip could not install the locked packages; its own words are above",
            "check the network or pip's configuration (`pip config list`), then call the same command again",
        )


# --- parts of the tests that are built from their sources ---


def build_parts() -> None:
    """The tests' own code knows what they are made of, and says what it does; where it is built this takes a moment."""
    # Outside the lock on this checkout: they have their own, since all checkouts share what is built.
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tests")}
    for part in ("kubernetes", "minio"):
        if asked_for(f"HANSA_SETUP_{part.upper()}"):
            build = [str(VENV_PYTHON), "-m", f"real.{part}"]
            succeeds(build, seconds=BUILD_SECONDS, environment=environment)


def succeeds(
    command: Sequence[str],
    *,
    seconds: float = DOWNLOAD_SECONDS,
    quiet: bool = False,
    log: TextIO | None = None,
    environment: Mapping[str, str] | None = None,
) -> bool:
    output = subprocess.DEVNULL if quiet else log
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError:
        return False
    except subprocess.TimeoutExpired:
        say(f"gave up after {seconds:.0f} s: {' '.join(command[:4])} …")
        return False
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
