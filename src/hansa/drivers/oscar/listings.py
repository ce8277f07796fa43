"""What do a peer's job listings tell: how long do jobs take there, how many wait? Page by page, in both shapes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from hansa.drivers.oscar import figures
from hansa.drivers.oscar.calls import Answer
from hansa.services import peers

_STATUSES: dict[str, Literal["Pending", "Running", "Succeeded", "Failed"]] = {
    "Running": "Running",
    "Succeeded": "Succeeded",
    "Failed": "Failed",
}
_WAITING = frozenset({"Pending", "Suspended"})  # Suspended is OSCAR's word for queued without a pod


@dataclass(slots=True)
class Listing:
    """The sum of the pages seen so far."""

    _seconds: float = 0.0
    _ended: int = 0
    _pending: int = 0
    _pages: set[str] = field(default_factory=set)

    def add(self, answer: Answer) -> str:
        """Takes a page in and names the next, "" when this was the last. Raises `PeerRefused`."""
        if not answer.body.strip():
            raise answer.nonsense("nothing, as OSCAR does when the account may not see these jobs")
        document = answer.document()
        for job in _jobs(document).values():
            if isinstance(job, Mapping):
                self._count(job)
        following = document.get("next_page")
        if not isinstance(following, str) or following in self._pages:  # a peer may send us round in circles
            return ""
        self._pages.add(following)
        return following

    def sum(self) -> peers.PeerHistory:
        return peers.PeerHistory(self._seconds / self._ended if self._ended else None, self._pending)

    def _count(self, job: Mapping[str, Any]) -> None:
        status = job.get("status")
        if not isinstance(status, str):
            return
        if status in _WAITING:
            self._pending += 1
        elif status == "Succeeded":
            begun, ended = _moment(job.get("start_time") or job.get("creation_time")), _moment(job.get("finish_time"))
            if begun is not None and ended is not None and ended >= begun:
                self._seconds += ended - begun
                self._ended += 1


def away_job(document: Mapping[str, Any], name: str, now: float) -> peers.AwayJob | None:
    """One job of a page; None if the page does not have it."""
    job = _jobs(document).get(name)
    if not isinstance(job, Mapping):
        return None
    status = job.get("status")
    started, finished = (figures.moment(_moment(job.get(key)), now) for key in ("start_time", "finish_time"))
    return peers.AwayJob(_STATUSES.get(str(status), "Pending"), started, finished)


def _jobs(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The jobs by name. Old managers answer just these, without a frame."""
    if "jobs" not in document:
        return document
    framed = document["jobs"]
    return framed if isinstance(framed, Mapping) else {}


def _moment(text: Any) -> float | None:
    if not isinstance(text, str) or len(text) > 40:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
