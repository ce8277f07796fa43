"""Where is the MinIO for the tests, and how does it come to be?

It is built from the Go module in `program` into the cache, once: a few minutes on two cores. `python -m real.minio`
builds it, and `scripts/setup.py test` calls that before the tests where `HANSA_SETUP_MINIO=yes` asks for it; tests only
look. `HANSA_TEST_MINIO` names a program that is there already.
"""

import os
import time
from pathlib import Path

from real import cache, go_programs

MODULE = Path(__file__).with_name("program")
_PACKAGE = "github.com/minio/minio"
_FLAGS = ("-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", "-s -w")


def found() -> Path | None:
    """The program, if it is here."""
    program = Path(os.environ.get("HANSA_TEST_MINIO") or cache.root() / _name() / "minio")
    return program if program.is_file() else None


def hindrance() -> str:
    """Why there is none; "" if there is one."""
    if found() is not None:
        return ""
    return go_programs.hindrance() or "it is not built; HANSA_SETUP_MINIO=yes make test builds it, once"


def build(say: cache.Say) -> Path:
    """The program, which is built if it was not."""

    def make(folder: Path) -> None:
        began = time.monotonic()
        say("building MinIO for the tests; once, a few minutes on two cores")
        go_programs.compile_program(MODULE, _FLAGS, _PACKAGE, folder / "minio")
        say(f"MinIO is built, after {time.monotonic() - began:.0f} s")

    return cache.made(_name(), make, say) / "minio"


def _name() -> str:
    sources = [(MODULE / name).read_bytes() for name in ("go.mod", "go.sum")]
    return f"minio-{cache.key(*sources, *_FLAGS, _PACKAGE)}"
