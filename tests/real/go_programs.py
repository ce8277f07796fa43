"""How does a real part that is written in Go come to be? From a Go module of ours, whose `go.sum` says what every
source file must hash to. Go fetches the sources as this machine's configuration tells it."""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from real import cache

OLDEST_GO = (1, 21)  # from here on Go fetches the newer one that a module asks for

_BUILD_SECONDS = 3600.0
_PROBE_SECONDS = 60.0
_GO_FOLDER = "/usr/local/go/bin"  # where Go's own archive is unpacked; not on everybody's PATH


def hindrance() -> str:
    """Why nothing can be built here; "" if it can."""
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


def compile_program(module: Path, flags: Sequence[str], package: str, program: Path) -> None:
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


def _go() -> str | None:
    return shutil.which("go", path=os.pathsep.join([os.environ.get("PATH", os.defpath), _GO_FOLDER]))
