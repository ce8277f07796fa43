"""A small HTTP server for exposed services: standard library only, since it runs inside a sandbox.

Answers with what it was asked; `/stream` in three parts with pauses between; `/ws` echoes messages upper-cased, after
it was asked `headers` it tells what it got; `/crash` ends the process; `/large` sends more than any buffer holds.
`X-Say` (JSON) is a list of headers to answer with, as a hostile tenant would.
"""

import base64
import hashlib
import http.server
import json
import os
import socketserver
import sys
import threading
from typing import Any

LIFE = os.urandom(8).hex()  # another one for each start
PAUSE = threading.Event()
LARGE = 64 * 2**20
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_any(self) -> None:
        path = self.path.partition("?")[0]
        if path.endswith("/crash"):
            sys.stdout.write("crashing\n")
            sys.stdout.flush()
            os._exit(3)
        if path.endswith("/ws") and self.headers.get("Upgrade", "").lower() == "websocket":
            self.web_socket()
        elif path.endswith("/stream"):
            self.stream()
        elif path.endswith("/large"):
            self.large()
        else:
            self.tell(path)

    def tell(self, path: str) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = self.chunks()
        told = {
            "method": self.command,
            "path": self.path,
            "body": body.decode("latin-1"),
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "all_headers": [[name.lower(), value] for name, value in self.headers.items()],
            "life": LIFE,
            "version": os.environ.get("VERSION", ""),
        }
        answer = json.dumps(told).encode()
        self.send_response(418 if path.endswith("/teapot") else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-From", "inside")
        self.send_header("Set-Cookie", "a=1")
        self.send_header("Set-Cookie", "b=2")
        for name, value in json.loads(self.headers.get("X-Say") or "[]"):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    def chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def stream(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in (b"first", b"second", b"third"):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.flush()
            PAUSE.wait(0.3)
        self.wfile.write(b"0\r\n\r\n")

    def large(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(LARGE))
        self.end_headers()
        for _ in range(LARGE // 65536):
            self.wfile.write(b"x" * 65536)

    def web_socket(self) -> None:
        key = self.headers["Sec-WebSocket-Key"]
        accept = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", accept)
        self.end_headers()
        while True:
            opcode, payload = self.frame()
            if opcode == 8:
                self.wfile.write(bytes([0x88, len(payload)]) + payload)
                self.close_connection = True
                return
            if opcode in (1, 2):
                answer = payload.upper()
                if payload == b"headers":
                    answer = json.dumps([[name.lower(), value] for name, value in self.headers.items()]).encode()
                size = bytes([len(answer)]) if len(answer) < 126 else bytes([126]) + len(answer).to_bytes(2, "big")
                self.wfile.write(bytes([0x80 | opcode]) + size + answer)

    def frame(self) -> tuple[int, bytes]:
        first, second = self.rfile.read(2)
        size = second & 0x7F
        mask = self.rfile.read(4)
        payload = bytes(byte ^ mask[at % 4] for at, byte in enumerate(self.rfile.read(size)))
        return first & 0x0F, payload

    def log_message(self, format: str, *args: Any) -> None:
        sys.stdout.write("asked " + format % args + "\n")
        sys.stdout.flush()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = handle_any


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    allow_reuse_address = True


if __name__ == "__main__":
    Server(("0.0.0.0", int(sys.argv[1])), Handler).serve_forever()
