"""One bounded HTTP call to another cluster: limited in time, size and number, never through a redirect or a proxy.

`OscarPeer` and `OscarPeers` ask through a `Line`. What the answer means is theirs; that there is none, that it is too
large, or that it points elsewhere is said here, without repeating anything secret of the request.
"""

import asyncio
import importlib.util
import ssl
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import httpx
import msgspec

from hansa.drivers.oscar import quoting
from hansa.drivers.oscar.limits import Limits
from hansa.drivers.oscar.under_way import Share, TooMuch, UnderWay
from hansa.drivers.wire import Flood, WireTransport
from hansa.kernel import bounded_json
from hansa.services import peers

# The HTTP library looks for this module several times for every request, to learn whether trio runs. Where it is not
# installed each look searches all folders, which took a third of the processor time of a call; this says so at once.
if importlib.util.find_spec("sniffio") is None:
    sys.modules.setdefault("sniffio", None)  # type: ignore[arg-type]

Transport = Callable[[ssl.SSLContext | bool], httpx.AsyncBaseTransport]

T = TypeVar("T")
_LARGE = 64 * 1024  # bytes that are read in a moment
_GATEWAYS = (502, 503, 504)
_GATEWAY_WORDS = ("bad gateway", "service unavailable", "gateway time", "no available server", "no healthy upstream",
                  "upstream connect error", "upstream request timeout")  # fmt: skip
_NO_ROUTE = ("404 page not found", "default backend", "<")


@dataclass(frozen=True, slots=True)
class Question:
    """One request. `whom` is how errors name the other side."""

    whom: str
    method: str
    url: str
    verify: bool
    timeout: float
    most: int  # bytes of a good answer; a longer one is refused
    cut: bool = False  # or cut, and the rest is not read
    own_words: bool = True  # its manager itself answers, not a program that somebody has there
    parts: int = 100_000  # of a JSON answer, see `bounded_json`
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content: bytes | None = field(default=None, repr=False)
    params: Mapping[str, str] | None = None
    secrets: Iterable[str] = field(default=(), repr=False)  # never to be repeated, besides the Authorization


@dataclass(frozen=True, slots=True)
class Answer:
    question: Question
    status: int
    content_type: str
    body: bytes = field(repr=False)
    whole: bool = True

    def document(self) -> dict[str, Any]:
        """The JSON object it holds. Raises `PeerRefused`. One that is large takes time: see `reading`."""
        if not bounded_json.is_light(self.body, self.question.parts):
            raise self.nonsense(f"JSON of more than {self.question.parts} parts, or too deep")
        try:
            found = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self.nonsense("something that is not JSON") from None
        if not isinstance(found, dict):
            raise self.nonsense("JSON that is not an object")
        return found

    async def reading(self, read: Callable[["Answer"], T]) -> T:
        """What `read` makes of it; of a large answer in a thread, so that others need not wait."""
        return await asyncio.to_thread(read, self) if len(self.body) > _LARGE else read(self)

    @property
    def problem(self) -> str:
        """The code of a Hansa manager's own refusal; "" when it comes from anybody else."""
        if "problem+json" not in self.content_type:
            return ""
        try:
            kind = self.document().get("type")
        except peers.PeerRefused:
            return ""
        before, _, code = kind.partition("/problems/") if isinstance(kind, str) else ("", "", "")
        return code if not before else ""

    @property
    def missing(self) -> bool:
        """Whether a manager says that there is no such thing; a proxy without a manager behind it says 404 too."""
        if self.status != 404:
            return False
        words = self.body[:200].decode("utf-8", "replace").strip().lower()
        return "html" not in self.content_type and not words.startswith(_NO_ROUTE)

    def nonsense(self, what: str) -> peers.PeerRefused:
        return peers.PeerRefused(
            f"{self.question.whom} answered {what}",
            status=self.status,
            hint="check that its address leads to an OSCAR or Hansa manager",
        )

    def trouble(self) -> peers.PeerRefused | peers.PeerUnreachable:
        """What an answer that is no success means."""
        asked = self.question
        if self.status in _GATEWAYS and not self._from_manager():
            return peers.PeerUnreachable(
                f"{asked.whom} is not there: what stands before it answered {self.status}",
                hint="check that its manager runs",
            )
        secrets = quoting.secrets_in(asked.headers.get("Authorization", "")).union(asked.secrets)
        said = quoting.quote(self.body, self.content_type, secrets) if self.whole else ""
        return peers.PeerRefused(
            f"{asked.whom} answered {self.status}" + (f": {said}" if said else ""),
            status=self.status,
            problem=self.problem,
        )

    def _from_manager(self) -> bool:
        """Managers answer JSON, or text in UTF-8 that says more than a proxy's phrases. Neither ever answers 504."""
        if self.status == 504 or not self.body.strip():
            return False
        if "json" in self.content_type:
            return self.body.lstrip()[:1] == b"{"
        words = self.body[:200].decode("utf-8", "replace").strip().lower()
        own_manner = self.content_type.replace(" ", "").lower() == "text/plain;charset=utf-8"
        return own_manner and not words.startswith(_GATEWAY_WORDS)


class Line:
    """The connections to all other clusters: a pool for each, because the work of a pool grows with the square of its
    connections; and we call as many as the settings trust. Without `transport` connections are made as usual."""

    def __init__(self, limits: Limits, transport: Transport | None = None) -> None:
        self._limits = limits
        self._transport = transport
        self._clients: dict[tuple[str, bool], httpx.AsyncClient] = {}
        self._trusted: dict[bool, ssl.SSLContext | bool] = {}
        self._all = asyncio.Semaphore(limits.connections)
        self._turns: WeakValueDictionary[tuple[str, bool], asyncio.Semaphore] = WeakValueDictionary()
        self._under_way = UnderWay(limits.answers)
        self._resting: dict[tuple[str, bool], float] = {}  # until when those are left alone that flooded us

    async def ask(self, question: Question) -> Answer:
        """The answer, whatever its status. Raises `PeerUnreachable`, or `PeerRefused` for one that is unfit."""
        sent = _Sent()
        try:
            async with asyncio.timeout(question.timeout):
                return await self._in_turn(question, sent)
        except (TimeoutError, httpx.TimeoutException):
            raise peers.PeerUnreachable(
                f"{question.whom} did not answer within {question.timeout:g} s", sent=sent.true
            ) from None
        except (httpx.LocalProtocolError, httpx.InvalidURL, UnicodeError, TypeError):
            # Only what kind of trouble: the library's text can hold the header it could not send.
            raise peers.PeerRefused(
                f"the request to {question.whom} cannot be sent: a header or the address is malformed", status=400
            ) from None
        except TooMuch:
            raise peers.PeerUnreachable(
                f"the answer of {question.whom} was not read: this manager reads too many long answers just now",
                hint="try again in a moment",
                sent=sent.true,
            ) from None
        except Flood as flood:
            raise peers.PeerUnreachable(
                f"{question.whom} floods us: {flood}", hint="check what answers at its address", sent=sent.true
            ) from None
        except httpx.HTTPError as error:
            raise _broken(question, error, sent.true) from None

    async def close(self) -> None:
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()

    async def _in_turn(self, question: Question, sent: "_Sent") -> Answer:
        url = httpx.URL(question.url)
        key = (f"{url.scheme}://{url.netloc.decode()}", question.verify)
        self._check_rest(question, key)
        turn = self._turns.get(key)
        if turn is None:
            turn = self._turns[key] = asyncio.Semaphore(self._limits.at_once)
        async with turn, self._all:
            self._check_rest(question, key)
            try:
                with self._under_way.answer(key[0]) as share:
                    return await self._exchange(question, self._client(key), url, sent, share)
            except Flood:
                if question.own_words:
                    self._resting[key] = asyncio.get_running_loop().time() + self._limits.rest
                raise

    def _check_rest(self, question: Question, key: tuple[str, bool]) -> None:
        left = self._resting.get(key, 0.0) - asyncio.get_running_loop().time()
        if left > 0:
            raise peers.PeerUnreachable(
                f"{question.whom} flooded us and is left alone for {left:.0f} s",
                sent=False,
                hint="check what answers at its address",
                retry_after=left,
            )
        self._resting.pop(key, None)

    async def _exchange(
        self, question: Question, client: httpx.AsyncClient, url: httpx.URL, sent: "_Sent", share: Share
    ) -> Answer:
        if question.params:
            url = url.copy_with(params=question.params)
        async with client.stream(
            question.method,
            url,
            headers=dict(question.headers),
            content=question.content,
            timeout=question.timeout,
            extensions={"trace": sent.note},
        ) as answer:
            status, kind = answer.status_code, answer.headers.get("content-type", "").lower()
            if 300 <= status < 400:
                raise peers.PeerRefused(
                    f"{question.whom} sends us elsewhere ({status}), and we do not follow",
                    status=status,
                    hint="register the address at which its manager itself answers",
                )
            good = status < 300
            if good and answer.headers.get("content-encoding", "identity") != "identity":
                raise Answer(question, status, kind, b"").nonsense("in an encoding we did not ask for")
            most = question.most if good else self._limits.error_answer
            body = await _read(answer, most, share, cut=good and question.cut)
            if good and body is None:
                raise Answer(question, status, kind, b"").nonsense(f"more than {most} bytes")
            return Answer(question, status, kind, body or b"", body is not None)

    def _client(self, key: tuple[str, bool]) -> httpx.AsyncClient:
        _, verify = key
        if key not in self._clients:
            if verify not in self._trusted:  # shared, for it takes long to read all issuers
                self._trusted[verify] = ssl.create_default_context() if verify else False
            trusted = self._trusted[verify]
            make = self._transport or self._directly
            self._clients[key] = httpx.AsyncClient(
                transport=make(trusted),
                trust_env=False,  # a proxy from the environment would see the tokens
                follow_redirects=False,
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # calls of many users share this client
                # Compressed, a small answer could unfold without bound.
                headers={"User-Agent": "hansa", "Accept-Encoding": "identity"},
            )
        return self._clients[key]

    def _directly(self, trusted: ssl.SSLContext | bool) -> httpx.AsyncBaseTransport:
        most = self._limits.at_once
        limits = httpx.Limits(
            max_connections=most, max_keepalive_connections=most, keepalive_expiry=self._limits.keep_idle
        )
        return WireTransport(verify=trusted, limits=limits)


class _Sent:
    """Whether any byte of the request may have left."""

    def __init__(self) -> None:
        self.true = False

    async def note(self, event: str, _info: Mapping[str, Any]) -> None:
        if event.endswith("send_request_headers.started"):
            self.true = True


async def _read(answer: httpx.Response, most: int, share: Share, *, cut: bool) -> bytes | None:
    told = answer.headers.get("content-length", "")
    if told.isascii() and told.isdigit():
        share.grow(min(int(told[:20]), most))  # at once: of many that grew together none would find room to the end
    body = bytearray()
    async for chunk in answer.aiter_raw():
        body += chunk
        if len(body) > most:
            return bytes(body[:most]) if cut else None
        share.grow(len(body))
    return bytes(body)


def _broken(question: Question, error: httpx.HTTPError, sent: bool) -> peers.PeerUnreachable:
    if sent:
        return peers.PeerUnreachable(f"{question.whom} broke off before its answer was complete")
    if "certificate" in str(error).lower():
        return peers.PeerUnreachable(
            f"the TLS certificate of {question.whom} is not accepted",
            sent=False,
            hint="have it renewed, or trust its issuer on this machine; verify = false in "
            "federation.clusters gives up the check",
        )
    return peers.PeerUnreachable(
        f"{question.whom} cannot be reached ({type(error).__name__})",
        sent=False,
        hint="check its address and that its manager runs",
    )
