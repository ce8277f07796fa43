"""An issuer on loopback that misbehaves as a real one never would on demand: hangs, lies, floods, redirects.

It speaks real HTTP and signs real tokens. `answers` maps a path to what it says; change it while it runs.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from joserfc import jwt
from joserfc.jwk import RSAKey
from joserfc.jws import JWSRegistry

DISCOVERY = "/.well-known/openid-configuration"


@dataclass(slots=True)
class Answer:
    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    never: bool = False  # the request is read and nothing comes back


class RogueIssuer:
    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.key = RSAKey.generate_key(2048, {"kid": "rogue", "use": "sig", "alg": "RS256"})
        self.asked: Counter[str] = Counter()
        self.answers: dict[str, Answer] = {}
        about = {"issuer": self.url, "jwks_uri": f"{self.url}/certs"}
        self.say(DISCOVERY, {**about, "userinfo_endpoint": f"{self.url}/userinfo"})
        self.say("/certs", {"keys": [self.key.as_dict(private=False)]})

    def say(self, path: str, body: object, status: int = 200) -> None:
        self.answers[path] = Answer(status, json.dumps(body).encode())

    def token(self, key: RSAKey | None = None, header: Mapping[str, Any] | None = None, **claims: Any) -> str:
        """A token signed by this issuer, an access token by its header; what is given as None is left out."""
        now = int(time.time())
        given = {"iss": self.url, "sub": "mallory@test", "iat": now, "exp": now + 300, **claims}
        kept = {name: value for name, value in given.items() if value is not None}
        fields = {"alg": "RS256", "kid": "rogue", "typ": "at+jwt", **(header or {})}
        shown = {name: value for name, value in fields.items() if value is not None}
        lenient = JWSRegistry(algorithms=["RS256", "RS512"], strict_check_header=False)
        lenient.max_header_length = 16_384
        return jwt.encode(shown, kept, key or self.key, registry=lenient)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1].decode()
            self.asked[path] += 1
            answer = self.answers.get(path, Answer(404))
            if answer.never:
                await reader.read()  # until the other side gives up
                return
            head = [
                f"HTTP/1.1 {answer.status} Rogue",
                f"content-length: {len(answer.body)}",
                "connection: close",
            ]
            head += [f"{name}: {value}" for name, value in answer.headers.items()]
            writer.write("\r\n".join([*head, "", ""]).encode() + answer.body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the other side may leave at any time
        finally:
            writer.close()


@asynccontextmanager
async def rogue_issuer() -> AsyncIterator[RogueIssuer]:
    issuers: list[RogueIssuer] = []
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(issuers[0].serve(reader, writer), name="rogue issuer")
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    issuers.append(RogueIssuer(server.sockets[0].getsockname()[1]))
    try:
        yield issuers[0]
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
