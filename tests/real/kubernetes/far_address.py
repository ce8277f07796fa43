"""An address beyond a cluster's pods at which somebody listens, on its node: a cloud's metadata, a public server."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator

from real.kubernetes import bottle
from real.kubernetes.access import Access

PORT = 80
_SECONDS = 20.0
_LISTEN = """\
import socket, sys
with socket.create_server((sys.argv[1], int(sys.argv[2]))) as door:
    print("listening", flush=True)
    while True:
        door.accept()[0].close()
"""


@contextlib.contextmanager
def listening(access: Access, address: str) -> Iterator[tuple[str, int]]:
    """The address and its port."""
    assert access.first is not None
    access.inside("ip", "address", "add", f"{address}/32", "dev", "lo")
    words = [*bottle.entering(access.first)[:2], "--net", "--", sys.executable, "-c", _LISTEN, address, str(PORT)]
    server = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert server.stdout is not None
    try:
        with server.stdout:
            assert server.stdout.readline() == b"listening\n"
            yield address, PORT
    finally:
        server.kill()
        server.wait(_SECONDS)
        access.inside("ip", "address", "del", f"{address}/32", "dev", "lo")
