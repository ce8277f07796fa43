"""Starts the stager. Whatever it imports takes a second, and a pod may end within it: SIGTERM is noted from the start,
for the first process of a container that does not listen never hears it."""

import signal
import sys
import threading

over = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: over.set())


def main() -> int:
    from hansa.drivers.kubernetes.stager import program  # noqa: PLC0415 - after we listen

    return program.main(sys.argv[1], over)


if __name__ == "__main__":
    sys.exit(main())
