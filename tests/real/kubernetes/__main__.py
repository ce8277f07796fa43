"""Makes everything that tests on a real Kubernetes need: `python -m real.kubernetes`, called by `scripts/setup.py`.

Nothing is said where nothing had to be made. Ends with 1 if something is missing or went wrong.
"""

import subprocess
import sys

from real.kubernetes import preparation


def say(line: str) -> None:
    print(f"setup: {line}", flush=True)


def main() -> int:
    try:
        return 0 if preparation.prepare(say) else 1
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        say(f"tests on a real Kubernetes will be left out: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
