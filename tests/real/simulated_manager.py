"""A manager as the hub sees one: it joins with a token and reports over mutual TLS, and nothing stands behind it.

For tests of the hub with more clusters than this machine could run managers; those of the product use real ones.
"""

import contextlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import httpx
import msgspec

from hansa.identity import authority
from hansa.messages.clusters import Facts
from hansa.messages.members import Desired, Heard, Heartbeat, Join, Joined, Report
from hansa.messages.trust import Roots

_SECONDS = 10.0


@dataclass(slots=True)
class SimulatedManager:
    cluster: str
    hubs: Sequence[str]  # addresses for members; the next one is tried when one does not answer
    facts: Facts = field(default_factory=Facts)
    joined: Joined | None = None
    timeout: float = _SECONDS
    _http: httpx.AsyncClient | None = None
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    _answered: int = 0
    _everything: dict[str, Any] = field(default_factory=dict)
    _whole: bool = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._http is not None:
            await self._http.aclose()

    async def join(self, token: str) -> Joined:
        async with httpx.AsyncClient(
            verify=authority.contexts.for_stranger(), trust_env=False, timeout=_SECONDS
        ) as stranger:
            said = await stranger.get(f"{self.hubs[0]}/member/v1/roots")
        roots = msgspec.json.decode(said.content, type=Roots)
        asked = authority.new_request(self.cluster)
        body = Join(token=token, cluster=self.cluster, request=asked.request, facts=self.facts)
        async with httpx.AsyncClient(
            verify=authority.contexts.for_member(roots.roots), trust_env=False, timeout=_SECONDS
        ) as client:
            answer = await client.post(
                f"{self.hubs[0]}/member/v1/join",
                content=msgspec.json.encode(body),
                extensions={"sni_hostname": authority.hub_name(roots.trust_domain)},
            )
        assert answer.status_code == 200, answer.text
        self.joined = msgspec.json.decode(answer.content, type=Joined)
        context = authority.contexts.for_member(self.joined.roots, self.joined.certificate, asked.key)
        self._http = httpx.AsyncClient(verify=context, trust_env=False, timeout=self.timeout)
        return self.joined

    async def beat(self, reports: Sequence[Report] = (), hub: int = 0, **sections: Any) -> Heard | None:
        """Reports to one hub, or to the next that answers; None if none does."""
        assert self.joined is not None
        self._everything |= sections
        told = self._everything if self._whole else sections
        number = next(self._numbers)
        beat = Heartbeat(
            incarnation=self.joined.incarnation,
            number=number,
            answered=self._answered,
            whole=self._whole,
            sections={name: msgspec.Raw(msgspec.json.encode(body)) for name, body in told.items()},
            reports=tuple(reports),
        )
        answer = await self._ask("POST", "heartbeat", hub, content=msgspec.json.encode(beat))
        if answer is None or answer.status_code >= 500:
            self._whole = True  # it may have been heard or not
            return None
        assert answer.status_code == 200, answer.text
        heard = msgspec.json.decode(answer.content, type=Heard)
        self._answered, self._whole = number, heard.whole
        return heard

    async def desired(self, after: int = 0, wait: float = 0.0) -> Desired | None:
        answer = await self._ask("GET", "desired", 0, params={"after": after, "wait": wait})
        assert answer is not None, "no hub answers"
        assert answer.status_code in (200, 204), answer.text
        return msgspec.json.decode(answer.content, type=Desired) if answer.status_code == 200 else None

    async def _ask(self, method: str, path: str, first: int, **how: Any) -> httpx.Response | None:
        assert self._http is not None
        assert self.joined is not None
        name = authority.hub_name(self.joined.trust_domain)
        for turn in range(len(self.hubs)):
            hub = self.hubs[(first + turn) % len(self.hubs)]
            with contextlib.suppress(httpx.TransportError):
                url = f"{hub}/member/v1/{path}"
                return await self._http.request(method, url, extensions={"sni_hostname": name}, **how)
        return None
