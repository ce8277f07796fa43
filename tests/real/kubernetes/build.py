"""Which programs is a Kubernetes made of, and how do they come to be?

They are built from the Go module in `programs`, whose `go.sum` says what every source file of them must hash to, into
the cache, once for a version and a way to build it: ten to fifteen minutes on two cores. Go fetches the sources as
this machine's configuration tells it. `preparation.py` calls `build`; tests only ever look with `found`.
"""

import contextlib
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from real.kubernetes import cache

VERSION = "v1.34.4"  # the last minor release whose kubelet takes control groups of version 1 without being asked
ETCD_VERSION = "3.6.4"
OLDEST_GO = (1, 21)  # from here on Go fetches the newer one that the module asks for

MODULE = Path(__file__).with_name("programs")
PROGRAMS: Mapping[str, str] = {
    "etcd": "go.etcd.io/etcd/server/v3",
    **{
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in (
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "kubelet",
            "kube-proxy",
            "kubectl",
        )
    },
}

_MAJOR, _MINOR, _ = VERSION.removeprefix("v").split(".")
# Without the stamp node and server report a placeholder, and refuse to go with each other.
_STAMP = {
    "gitVersion": VERSION,
    "gitMajor": _MAJOR,
    "gitMinor": _MINOR,
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
}
_STAMPED = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
_FLAGS = (
    "-trimpath",
    "-buildvcs=false",
    "-mod=readonly",
    "-ldflags",
    "-s -w " + " ".join(f"-X {place}.{name}={value}" for place in _STAMPED for name, value in _STAMP.items()),
)

_BUILD_SECONDS = 3600.0
_PROBE_SECONDS = 60.0
_GO_FOLDER = "/usr/local/go/bin"  # where Go's own archive is unpacked; not on everybody's PATH


def found() -> Path | None:
    """The folder of the programs, if they were built."""
    folder = cache.root() / _name() / "bin"
    return folder if folder.is_dir() else None


def hindrance() -> str:
    """Why they cannot be built here; "" if they can."""
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        return f"its programs are built for Linux on x86_64, and this is {platform.system()} on {platform.machine()}"
    go = _go()
    if go is None:
        return "no program `go` to build it with"
    told = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False)
    version = re.match(r"go(\d+)\.(\d+)", told.stdout)
    if version is None or (int(version[1]), int(version[2])) < OLDEST_GO:
        return f"Go {'.'.join(map(str, OLDEST_GO))} or newer is needed to build it; this is {told.stdout.strip()}"
    return ""


def build(say: cache.Say) -> Path:
    """The folder of the programs, which are built if they were not."""

    def make(folder: Path) -> None:
        began = time.monotonic()
        say(f"building Kubernetes {VERSION} for the tests; once, ten to fifteen minutes on two cores")
        (folder / "bin").mkdir()
        for number, (name, package) in enumerate(PROGRAMS.items(), 1):
            since = time.monotonic()
            compile_program(MODULE, _FLAGS, package, folder / "bin" / name)
            say(f"  {number} of {len(PROGRAMS)}: {name} ({time.monotonic() - since:.0f} s)")
        _check(folder / "bin")
        say(f"Kubernetes {VERSION} is built, after {time.monotonic() - began:.0f} s")

    return cache.made(_name(), make, say) / "bin"


def _name() -> str:
    sources = [(MODULE / name).read_bytes() for name in ("go.mod", "go.sum")]
    return f"kubernetes-{VERSION}-{cache.key(*sources, *_FLAGS, *PROGRAMS, *PROGRAMS.values())}"


def compile_program(module: Path, flags: Sequence[str], package: str, program: Path) -> None:
    """A program of a Go module of ours."""
    go = _go()
    assert go is not None, "whoever builds has asked for hindrances"
    words = ["nice", "-n", "10", go, "build", *flags, "-o", str(program), package]
    done = subprocess.run(
        words,
        cwd=module,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=_BUILD_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"go build {package} failed:\n{done.stderr[-4000:]}")


def _environment() -> dict[str, str]:
    """Ours, since it may say how Go fetches; with places for Go's caches where there is no home to keep them."""
    environment = {**os.environ, "CGO_ENABLED": "0", "GOOS": "linux", "GOARCH": "amd64"}
    if not environment.get("HOME"):
        environment.setdefault("GOPATH", str(cache.root() / "go"))
        environment.setdefault("GOCACHE", str(cache.root() / "go-build"))
    return environment


def _check(folder: Path) -> None:
    """Are these what we meant to build?"""
    for name in PROGRAMS:
        words = ("version", "--client") if name == "kubectl" else ("--version",)
        wanted = ETCD_VERSION if name == "etcd" else VERSION
        told = subprocess.run(
            [folder / name, *words], capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False
        ).stdout
        with contextlib.suppress(IndexError):
            if told.splitlines()[0].split()[-1] == wanted:
                continue
        raise RuntimeError(f"{name} is not {wanted}; it says {told.strip()!r}")


def _go() -> str | None:
    return shutil.which("go", path=os.pathsep.join([os.environ.get("PATH", os.defpath), _GO_FOLDER]))
