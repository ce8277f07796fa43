"""An exposed service of a hostile tenant: standard library only, since it runs inside a sandbox.

`/tiny` answers without end in chunks of one byte, `/early` without end that the answer will come, `/lines` with headers
without end, `/silent` never, `/short` with less than it promises; `/spare` tells how many of these are under way.
"""

import socket
import sys
import threading

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
FLOODS = {
    b"/tiny": (CHUNKED, b"1\r\na\r\n"),
    b"/early": (b"", b"HTTP/1.1 103 E\r\n\r\n"),
    b"/lines": (b"HTTP/1.1 200 OK\r\n", b"a:\r\n"),
    b"/silent": (b"", b""),
}
MANY = 100_000
under_way: set[socket.socket] = set()


def answer(visitor: socket.socket) -> None:
    try:
        asked = b""
        while b"\r\n\r\n" not in asked and (more := visitor.recv(65536)):
            asked += more
        path = asked.split(b" ", 2)[1] if asked else b""
        flood = next((FLOODS[one] for one in FLOODS if path.endswith(one)), None)
        if flood is not None:
            under_way.add(visitor)
            pour(visitor, *flood)
        elif path.endswith(b"/short"):
            visitor.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort")
        elif path:
            said = b"%d" % len(under_way)
            visitor.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(said) + said)
    except OSError:
        pass
    finally:
        under_way.discard(visitor)
        visitor.close()


def pour(visitor: socket.socket, begin: bytes, piece: bytes) -> None:
    visitor.sendall(begin)
    much = piece * MANY
    while much:
        visitor.sendall(much)
    visitor.recv(1)  # until they go


if __name__ == "__main__":
    with socket.create_server(("0.0.0.0", int(sys.argv[1])), backlog=500) as listening:
        while True:
            threading.Thread(target=answer, args=(listening.accept()[0],), daemon=True).start()
