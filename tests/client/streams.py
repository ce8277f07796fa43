"""A small real server that tells events as a hub does, and cuts every stream in the end."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PART = b'{"id":"lubeck","kind":"hansa","state":"ready","region":"eu","zone":"","seen":1.0,"totals":{"cpu":4000}}'
SNAPSHOT = b'id: a-1\nevent: snapshot\ndata: {"at":1,"age":0,"clusters":[%b],"regions":{},"total":{}}\n\n' % PART
CHANGE = b'id: a-4\nevent: change\ndata: {"id":7,"at":1,"cluster":"lubeck","kind":"state","detail":"why"}\n\n'
LATER = (
    b"id: a-2\nevent: cluster\ndata: %b\n\n: still here\n\n" % PART
    + b'id: a-3\nevent: of-a-newer-hub\ndata: ?\n\nid: a-3\nevent: removed\ndata: {"id":"lubeck"}\n\n'
    + CHANGE
)


@contextmanager
def streams(*said: bytes) -> Iterator[tuple[str, list[str]]]:
    """Answers each call with one of these, then cuts it; gives the address, and where each caller wanted to go on."""
    wanted: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            listener.settimeout(20)
            for one in said:
                with suppress(OSError):
                    link, _ = listener.accept()
                    with link:
                        asked = link.recv(65536)
                        found = re.search(rb"last-event-id: (\S+)", asked, re.IGNORECASE)
                        wanted.append(found[1].decode() if found else "")
                        link.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
                        link.sendall(one)
            listener.close()  # whoever comes now is refused

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", wanted
        finally:
            thread.join(25)
