"""`python -m hansa.entrypoints.playground`: the three clusters in `.playground/` of the current folder."""

import asyncio
import os
import sys
from pathlib import Path

from hansa.entrypoints.playground import federation
from hansa.entrypoints.playground.report import Report
from hansa.kernel.errors import HansaError

FOLDER = Path(".playground")


def main() -> int:
    report = Report(sys.stdout)
    try:
        asyncio.run(federation.run(FOLDER.absolute(), os.environ, report))
    except HansaError as error:
        report.failure(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
