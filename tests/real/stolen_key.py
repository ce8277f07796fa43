"""Somebody with a copy of a member's key file, as the hub sees them: any heartbeat, sent as that member.

thief = Thief.of(manager)
thief.beat(2**62, facts={**thief.facts, "endpoint": "http://evil.example"})
"""

import itertools
import json
from dataclasses import dataclass, field
from typing import Any

import httpx

from hansa.identity import authority
from real.manager import Manager

_FIELDS: tuple[str, ...] = ("reports", "answered", "run", "whole", "incarnation")


@dataclass(slots=True)
class Thief:
    stolen: dict[str, Any]
    _http: httpx.Client
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    @classmethod
    def of(cls, manager: Manager) -> "Thief":
        stolen = json.loads((manager.data / "membership" / "hub-credentials.json").read_text())
        context = authority.contexts.for_member(stolen["roots"], stolen["chain"], stolen["key"])
        return cls(stolen, httpx.Client(verify=context, trust_env=False, timeout=30))

    def close(self) -> None:
        self._http.close()

    def beat(self, number: int | None = None, *, body: bytes = b"", **said: Any) -> httpx.Response:
        """Sections by their names; `reports`, `answered`, `run`, `whole` and `incarnation` as in a heartbeat."""
        given: dict[str, Any] = {name: said.pop(name) for name in _FIELDS if name in said}
        beat: dict[str, Any] = {
            "incarnation": self.stolen["incarnation"],
            "number": next(self._numbers) if number is None else number,
            "sections": said,
            **given,
        }
        return self._ask("POST", "heartbeat", content=body or json.dumps(beat).encode())

    def renew(self) -> httpx.Response:
        """A key and certificate of its own, which it shows from then on."""
        asked = authority.new_request(self.stolen["cluster"])
        answer = self._ask("POST", "renew", content=json.dumps({"request": asked.request}).encode())
        if answer.status_code == 200:
            got = answer.json()
            context = authority.contexts.for_member(got["roots"], got["certificate"], asked.key)
            self._http.close()
            self._http = httpx.Client(verify=context, trust_env=False, timeout=30)
        return answer

    def leave(self, run: str | None = None) -> httpx.Response:
        """A goodbye in its name; without a mark as of a manager of an earlier release."""
        return self._ask("POST", "leave", content=b"" if run is None else json.dumps({"run": run}).encode())

    def neighbours(self) -> dict[str, str]:
        """What the hub tells it of the others."""
        found = self._ask("GET", "desired", params={"after": 0, "wait": 0}).json()["neighbours"]
        return {one["id"]: one["endpoint"] for one in found}

    def _ask(self, method: str, path: str, **how: Any) -> httpx.Response:
        name = authority.hub_name(self.stolen["trust_domain"])
        url = f"{self.stolen['hub']}/member/v1/{path}"
        return self._http.request(method, url, extensions={"sni_hostname": name}, **how)
