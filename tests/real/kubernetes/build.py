"""Which programs is a Kubernetes made of, and how do they come to be?

They are built from the Go module in `programs`, whose `go.sum` says what every source file of them must hash to, into
the cache, once for a version and a way to build it: ten to fifteen minutes on two cores. `preparation.py` calls
`build`; tests only ever look with `found`.
"""

import contextlib
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from real import cache, go_programs

VERSION = "v1.34.4"  # the last minor release whose kubelet takes control groups of version 1 without being asked
ETCD_VERSION = "3.6.4"

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

_PROBE_SECONDS = 60.0


def found() -> Path | None:
    """The folder of the programs, if they were built."""
    folder = cache.root() / _name() / "bin"
    return folder if folder.is_dir() else None


def build(say: cache.Say) -> Path:
    """The folder of the programs, which are built if they were not."""

    def make(folder: Path) -> None:
        began = time.monotonic()
        say(f"building Kubernetes {VERSION} for the tests; once, ten to fifteen minutes on two cores")
        (folder / "bin").mkdir()
        for number, (name, package) in enumerate(PROGRAMS.items(), 1):
            since = time.monotonic()
            go_programs.compile_program(MODULE, _FLAGS, package, folder / "bin" / name)
            say(f"  {number} of {len(PROGRAMS)}: {name} ({time.monotonic() - since:.0f} s)")
        _check(folder / "bin")
        say(f"Kubernetes {VERSION} is built, after {time.monotonic() - began:.0f} s")

    return cache.made(_name(), make, say) / "bin"


def _name() -> str:
    sources = [(MODULE / name).read_bytes() for name in ("go.mod", "go.sum")]
    return f"kubernetes-{VERSION}-{cache.key(*sources, *_FLAGS, *PROGRAMS, *PROGRAMS.values())}"


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
