"""Where is a Helm for the tests, and how is it called?

It is built from the Go module in `helm`, as Kubernetes itself from `programs` (`build.py`), into the cache: three
minutes on two cores where Kubernetes was built before, since both are made of the same libraries. `preparation.py`
calls `build`; tests only ever look with `found`, and call it with `Helm`.
"""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from real import cache, go_programs
from real.kubernetes import build as programs

VERSION = "v3.19.5"  # the release for the Kubernetes we build

MODULE = Path(__file__).with_name("helm")
_PACKAGE = "helm.sh/helm/v3/cmd/helm"
_MAJOR, _MINOR, _ = programs.VERSION.removeprefix("v").split(".")
# Without the stamp it takes itself for no release, and every cluster it is not connected to for a very old one.
_STAMP = {
    "internal/version.version": VERSION,
    **{f"{where}.k8sVersionMajor": _MAJOR for where in ("pkg/lint/rules", "pkg/chartutil")},
    **{f"{where}.k8sVersionMinor": _MINOR for where in ("pkg/lint/rules", "pkg/chartutil")},
}
_FLAGS = (
    *("-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags"),
    "-s -w " + " ".join(f"-X helm.sh/helm/v3/{name}={text}" for name, text in _STAMP.items()),
)
_PROBE_SECONDS = 60.0
_CALL_SECONDS = 240.0


def found() -> Path | None:
    """The program, if it was built."""
    program = cache.root() / _name() / "helm"
    return program if program.is_file() else None


def hindrance() -> str:
    """Why there is none; "" if there is one."""
    if found() is not None:
        return ""
    return go_programs.hindrance() or "Helm is not built; HANSA_SETUP_KUBERNETES=yes make test builds it, once"


def build(say: cache.Say) -> Path:
    """The program, which is built if it was not."""

    def make(folder: Path) -> None:
        began = time.monotonic()
        say(f"building Helm {VERSION} for the tests; once, some minutes on two cores")
        go_programs.compile_program(MODULE, _FLAGS, _PACKAGE, folder / "helm")
        told = Helm(folder / "helm").run("version", "--short")
        if not told.stdout.startswith(VERSION):
            raise RuntimeError(f"helm is not {VERSION}; it says {told.stdout.strip()!r} {told.stderr.strip()!r}")
        say(f"Helm {VERSION} is built, after {time.monotonic() - began:.0f} s")

    return cache.made(_name(), make, say) / "helm"


def _name() -> str:
    sources = [(MODULE / name).read_bytes() for name in ("go.mod", "go.sum")]
    return f"helm-{VERSION}-{cache.key(*sources, *_FLAGS, _PACKAGE)}"


@dataclass(frozen=True, slots=True)
class Helm:
    """Calls of the program, for one cluster or for none; nothing of this account's own Helm is read or changed."""

    program: Path
    kubeconfig: Path | None = None

    def run(self, *words: str, values: Mapping[str, Any] | None = None, check: bool = False) -> "Told":
        """`values` are given as a file of JSON, which is YAML too."""
        with tempfile.TemporaryDirectory(prefix="hansa-helm-") as home:
            given: Sequence[str] = ()
            if values is not None:
                (Path(home) / "values.json").write_text(json.dumps(values))
                given = ("--values", str(Path(home) / "values.json"))
            done = subprocess.run(
                [str(self.program), *words, *given],
                env=self._environment(home),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_CALL_SECONDS,
                check=False,
            )
        told = Told(done.returncode, done.stdout, done.stderr)
        assert not check or told.ok, f"helm {' '.join(words)}: {told.stderr or told.stdout}"
        return told

    def _environment(self, home: str) -> dict[str, str]:
        folders = {f"HELM_{kind}_HOME": f"{home}/{kind.lower()}" for kind in ("CACHE", "CONFIG", "DATA")}
        where = {"KUBECONFIG": str(self.kubeconfig)} if self.kubeconfig else {"KUBECONFIG": f"{home}/none"}
        # No proxy of this machine: the cluster is beside us.
        return {"PATH": os.environ.get("PATH", os.defpath), "HOME": home, **folders, **where}


@dataclass(frozen=True, slots=True)
class Told:
    code: int
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        return self.code == 0
