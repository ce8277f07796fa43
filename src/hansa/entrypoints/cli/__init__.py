"""The command line door: `hansa …`. A command parses, calls a manager's REST API, and prints.

Start at `app.py` (the commands put together, and how a failure becomes an exit code); each command group has
its file in `commands/`. `client.py` speaks HTTP, `profiles.py` remembers clusters, `screen.py` prints.
"""

import sys


def main() -> None:
    """The entry point `hansa`."""
    # Imported here so that `import hansa.entrypoints.cli` stays cheap for those who only want a part of it.
    from hansa.entrypoints.cli.app import run  # noqa: PLC0415

    sys.exit(run(sys.argv[1:]))
