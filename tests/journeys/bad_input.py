"""For the tests of bad input: what a manager holds before and after, and requests exactly as they are written."""

import http.client
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from journeys.waiting import all_jobs
from real.manager import Manager

ANSWER_SECONDS = 5.0  # on a machine that is busy with other things; a refusal takes a few milliseconds
USER = "alice@test"


@dataclass(frozen=True)
class Victim:
    """Things that exist, so that bad input to them has something to change."""

    service: str
    bucket: str
    volume: str
    job: str

    def values(self, **other: str) -> Mapping[str, str]:
        """What fills the path of a route; a name we do not know yet names nothing."""
        known = {
            "name": self.service,
            "service": self.service,
            "bucket": self.bucket,
            "volume": self.volume,
            "job": self.job,
            "user_id": USER,
            "path": "index.html",
        }
        return defaultdict(lambda: "nothing", {**known, **other})


def holdings(admin: httpx.Client, victim: Victim) -> dict[str, Any]:
    """Everything a bad request could have changed."""
    paths = ("services", "buckets", "volumes", "config", f"quotas/user/{USER}", f"federation/{victim.service}")
    held: dict[str, Any] = {path: admin.get(f"/system/{path}").json() for path in paths}
    held["objects"] = admin.get(f"/system/buckets/{victim.bucket}").json()
    held["jobs"] = sorted(all_jobs(admin, victim.service))
    return held


def stumble(log: str) -> str:
    """The first thing in a manager's log that no request should bring about; empty if there is none."""
    for sign in ("Traceback", '"status": 500'):
        if sign in log:
            at = log.index(sign)
            return log[max(0, at - 500) : at + 3000]
    return ""


@contextmanager
def nothing_changes(manager: Manager, victim: Victim) -> Iterator[None]:
    """Nothing is different afterwards, and the manager neither stumbled nor stopped."""
    before, log = holdings(manager.admin, victim), len(manager.log)
    yield
    after = holdings(manager.admin, victim)
    for part in before:  # each by itself: a difference in all of it at once is hard to read
        assert after[part] == before[part], part
    assert not stumble(manager.log[log:])


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float

    @property
    def text(self) -> str:
        return self.body.decode()


class Caller:
    """Sends a target and headers byte by byte as given, which careful clients refuse to do."""

    def __init__(self, manager: Manager, authorization: str = "") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", manager.port, timeout=20)
        self._authorization = authorization

    def ask(self, method: str, target: str, body: bytes = b"", **headers: str | bytes) -> Answer:
        started = time.monotonic()
        self._connection.putrequest(method, target, skip_accept_encoding=True)
        if self._authorization:
            self._connection.putheader("Authorization", self._authorization)
        for name, value in headers.items():
            self._connection.putheader(name.replace("_", "-"), value)
        self._connection.putheader("Content-Length", str(len(body)))
        self._connection.endheaders(body)
        answer = self._connection.getresponse()
        content = answer.read()
        return Answer(answer.status, dict(answer.getheaders()), content, time.monotonic() - started)

    def close(self) -> None:
        self._connection.close()


def operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Method, path and description of every operation in the OpenAPI document."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method.upper(), path, operation


def precise(answer: Answer | httpx.Response, *statuses: int) -> None:
    """A refusal that says what is wrong, soon."""
    status = answer.status if isinstance(answer, Answer) else answer.status_code
    assert status in statuses, (status, answer.text[:500])
    assert 3 < len(answer.text) < 2000, answer.text[:3000]
    seconds = answer.seconds if isinstance(answer, Answer) else answer.elapsed.total_seconds()
    assert seconds < ANSWER_SECONDS
