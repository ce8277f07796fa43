"""A port of this machine that listens at every address it has, and remembers who called and where.

One of the addresses belongs to a cluster that the operator trusts: what is called there is no crime, but it must hear
nothing that is somebody else's.
"""

import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

TRUSTED = "127.0.0.2"
_NOTHING_HERE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_MOST = 65_536
_PATIENCE = 2.0


@dataclass(slots=True)
class Port:
    number: int
    forbidden: list[str] = field(default_factory=list)  # who called, where, with which first words
    trusted: list[bytes] = field(default_factory=list)  # what the trusted cluster heard


@contextlib.contextmanager
def listening() -> Iterator[Port]:
    class Hearing(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.settimeout(_PATIENCE)
            heard = b""
            with contextlib.suppress(OSError):
                heard = self.request.recv(_MOST)
                self.request.sendall(_NOTHING_HERE)
            where = str(self.request.getsockname()[0]).removeprefix("::ffff:")
            if where == TRUSTED:
                port.trusted.append(heard)
            else:
                port.forbidden.append(f"{self.client_address[0]} called {where}: {heard[:300]!r}")

    class Server(socketserver.ThreadingTCPServer):
        address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
        daemon_threads = True

        def server_bind(self) -> None:
            if self.address_family == socket.AF_INET6:
                self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            super().server_bind()

    with Server(("", 0), Hearing) as server:
        port = Port(int(server.server_address[1]))
        thread = threading.Thread(target=server.serve_forever, name="forbidden port")
        thread.start()
        try:
            yield port
        finally:
            server.shutdown()
            thread.join(10)


def own_address() -> str:
    """The address other machines know this one by; loopback where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
