"""Builds the MinIO of the tests: `python -m real.minio`, called by `scripts/setup.py`.

Nothing is said where it was built before. Ends with 1 if it could not be built, and says why.
"""

import subprocess
import sys

from real import go_programs
from real.minio import building


def say(line: str) -> None:
    print(f"setup: {line}", flush=True)


def main() -> int:
    try:
        if building.found() is None:
            if why := go_programs.hindrance():
                raise RuntimeError(why)
            building.build(say)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        say(f"tests on a real MinIO will be left out: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
