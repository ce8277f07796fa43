"""Where do the container runtime and the insides of the test images come from, with nothing installed?

Debian's packages are fetched and unpacked into folders of the cache: `node` (what a Kubernetes node calls), `busybox`
and `python` (what images are made of). No package script runs, no daemon starts, and apt keeps its lists in folders of
ours, so this machine's are as they were. Which mirror serves them is the machine's configuration.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from real import cache

TREES: Mapping[str, tuple[str, ...]] = {
    "node": (
        *("containerd", "runc", "containernetworking-plugins", "tini"),
        *("iptables", "nftables", "conntrack", "ipset", "socat", "ethtool"),
        *("libip4tc2", "libip6tc2", "libxtables12", "libnftnl11", "libmnl0", "libnetfilter-conntrack3"),
        *("libnfnetlink0", "libnftables1", "libjansson4", "libipset13", "libseccomp2", "libedit2", "libbsd0"),
    ),
    "busybox": ("busybox-static",),
    "python": (
        *("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "ca-certificates", "tzdata"),
        *("libc6", "libgcc-s1", "libstdc++6", "libcrypt1", "libssl3", "zlib1g", "libbz2-1.0", "liblzma5"),
        *("libexpat1", "libffi8", "libsqlite3-0", "libuuid1", "libncursesw6", "libtinfo6", "libreadline8"),
        "media-types",
    ),
}

_SECONDS = 900.0
_FORMAT = "2"  # of what we do to the trees after unpacking
# update-alternatives would have chosen, but no package script runs.
_IPTABLES = tuple(f"{family}{what}" for family in ("iptables", "ip6tables") for what in ("", "-save", "-restore"))
_UNREAD = ("doc", "man", "lintian", "bug", "info", "locale")


def found() -> Path | None:
    """The folder with the trees, if they were fetched."""
    folder = cache.root() / _name()
    return folder if folder.is_dir() else None


def hindrance() -> str:
    """Why they cannot be fetched here; "" if they can."""
    missing = [program for program in ("apt-get", "dpkg") if shutil.which(program) is None]
    return f"no program `{missing[0]}`: a node's programs are taken from Debian packages" if missing else ""


def fetch(say: cache.Say) -> Path:
    """The folder with the trees, fetched if they were not."""

    def make(folder: Path) -> None:
        began = time.monotonic()
        say("fetching the Debian packages of a Kubernetes node and its test images")
        apt = folder / "apt"
        options = _private_apt(apt)
        _run(["apt-get", *options, "update"], folder)
        for name, packages in TREES.items():
            _unpack(options, packages, folder, name)
        _finish_node(folder / "node")
        _finish_python(folder / "python")
        shutil.rmtree(apt)
        say(f"Debian's packages are unpacked, after {time.monotonic() - began:.0f} s")

    return cache.made(_name(), make, say)


def _name() -> str:
    return f"debian-{cache.key(_FORMAT, *(f'{tree}/{package}' for tree in TREES for package in TREES[tree]))}"


def _private_apt(folder: Path) -> list[str]:
    for needed in ("lists/partial", "cache/archives/partial"):
        (folder / needed).mkdir(parents=True)
    return [
        "-qq",
        *("-o", f"Dir::State::lists={folder / 'lists'}"),
        *("-o", f"Dir::Cache={folder / 'cache'}"),
        *("-o", "Acquire::Retries=3"),
        *("-o", "APT::Sandbox::User=root"),  # the account apt would use instead cannot enter the folder
    ]


def _unpack(options: list[str], packages: tuple[str, ...], folder: Path, name: str) -> None:
    archives = folder / "apt" / name
    archives.mkdir()
    _run(["apt-get", *options, "download", *packages], archives)
    (folder / name).mkdir()
    for archive in sorted(archives.glob("*.deb")):
        _run(["dpkg", "-x", str(archive), str(folder / name)], folder)
    shutil.rmtree(archives)
    _merge_usr(folder / name)
    for unread in _UNREAD:
        shutil.rmtree(folder / name / "usr" / "share" / unread, ignore_errors=True)


def _merge_usr(tree: Path) -> None:
    """Packages still bring /sbin and /lib, which a running Debian has as links into /usr."""
    for name in ("bin", "sbin", "lib", "lib64"):
        if (tree / name).is_dir() and not (tree / name).is_symlink():
            shutil.copytree(tree / name, tree / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(tree / name)


def _finish_node(tree: Path) -> None:
    for program in _IPTABLES:
        place = tree / "usr" / "sbin" / program
        place.unlink(missing_ok=True)
        place.symlink_to("xtables-nft-multi")


def _finish_python(tree: Path) -> None:
    for name in ("lib", "lib64"):
        (tree / name).symlink_to(f"usr/{name}")
    (tree / "usr" / "bin" / "python3").symlink_to("python3.11")
    bundle = tree / "etc" / "ssl" / "certs" / "ca-certificates.crt"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    single = sorted((tree / "usr" / "share" / "ca-certificates").rglob("*.crt"))
    bundle.write_bytes(b"".join(one.read_bytes() for one in single))
    (tree / "usr" / "lib" / "ssl").mkdir(exist_ok=True)  # where OpenSSL looks
    (tree / "usr" / "lib" / "ssl" / "cert.pem").symlink_to("/etc/ssl/certs/ca-certificates.crt")
    shutil.rmtree(tree / "usr" / "share" / "ca-certificates")
    shutil.rmtree(tree / "usr" / "lib" / "x86_64-linux-gnu" / "gconv")  # character sets that nobody asks libc for


def _run(words: list[str], folder: Path) -> None:
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words[:1] + words[-1:])} failed:\n{done.stderr[-4000:]}")
