"""Do the namespaces of the partition stories do what they say, and are they gone afterwards?"""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from real.gate import in_namespace
from real.netns import Network, network

PORT = 7007
_TESTS = str(Path(__file__).parents[2])
_LIMIT = 0.7


@contextlib.contextmanager
def echoing(net: Network, name: str) -> Iterator[None]:
    """A server in a namespace that says back what it hears."""
    listening = in_namespace(net.namespace(name), lambda: socket.create_server((net.address(name), PORT)))
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            with contextlib.suppress(OSError):
                visitor, _ = listening.accept()
                with visitor:
                    visitor.settimeout(_LIMIT)
                    visitor.sendall(visitor.recv(16))

    listening.settimeout(0.1)
    thread = threading.Thread(target=serve, name=f"echo at {name}")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(10)
        listening.close()


def seconds(net: Network, source: str, target: str) -> float | None:
    """How long a word there and back takes; None if it does not come back."""

    def ask() -> float | None:
        begun = time.perf_counter()
        try:
            with socket.create_connection((net.address(target), PORT), timeout=_LIMIT) as link:
                link.sendall(b"ahoy")
                return time.perf_counter() - begun if link.recv(16) == b"ahoy" else None
        except OSError:
            return None

    return in_namespace(net.namespace(source), ask)


@pytest.fixture
def net() -> Iterator[Network]:
    with network("lubeck", "visby", "riga") as made, contextlib.ExitStack() as servers:
        for name in made.names:
            servers.enter_context(echoing(made, name))
        yield made


def test_links_are_cut_and_heal(net: Network) -> None:
    assert seconds(net, "lubeck", "visby") is not None
    net.cut_pair("lubeck", "visby")
    assert (seconds(net, "lubeck", "visby"), seconds(net, "visby", "lubeck")) == (None, None)
    assert seconds(net, "lubeck", "riga") is not None
    net.heal_all()
    net.one_way("riga", "lubeck")
    assert seconds(net, "lubeck", "riga") is None  # the answer does not come back
    assert seconds(net, "riga", "visby") is not None
    net.heal_all()
    net.cut("riga")
    assert seconds(net, "lubeck", "riga") is None
    net.heal("riga")
    assert seconds(net, "lubeck", "riga") is not None


def test_a_slow_link_is_slow(net: Network) -> None:
    assert (seconds(net, "lubeck", "visby") or 9) < 0.05
    net.delay("visby", 0.025)
    took = seconds(net, "lubeck", "visby")
    assert took is not None
    assert took >= 0.1  # two round trips of 50 ms
    assert (seconds(net, "lubeck", "riga") or 9) < 0.05


def test_nothing_is_left_of_a_run_that_failed() -> None:
    with pytest.raises(RuntimeError, match="on purpose"), network("lubeck") as made:
        raise RuntimeError("on purpose")
    assert made.prefix not in listed()


def listed() -> str:
    return subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, timeout=10, check=True).stdout


def test_what_a_killed_run_left_is_removed_by_the_next() -> None:
    code = "import os; from real.netns import network; made = network('lubeck').__enter__(); os._exit(0)"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": _TESTS}, timeout=30, check=True)
    with network("visby") as made:
        left = [line for line in listed().splitlines() if line.endswith("-lubeck")]
        assert not [line for line in left if not Path("/proc", str(int(line.split("-")[1], 16))).exists()]
        assert made.namespace("visby") in listed()
