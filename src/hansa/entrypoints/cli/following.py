"""What is a job doing, and how does it end? Polls its status and prints the new part of its log."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hansa.entrypoints.cli.client import Manager
from hansa.entrypoints.cli.screen import Screen
from hansa.kernel import errors

ENDED = frozenset({"Succeeded", "Failed"})
_WAITING = frozenset({"Pending", "Suspended"})


class JobUnknown(errors.NotFound):
    """There is no such job."""

    code = "cli.job-unknown"


@dataclass(frozen=True, slots=True)
class Job:
    name: str
    facts: dict[str, Any]

    @property
    def status(self) -> str:
        return str(self.facts.get("status", "Unknown"))

    def data(self) -> dict[str, Any]:
        return {"name": self.name, **self.facts}


def newest_first(jobs: dict[str, dict[str, Any]]) -> list[Job]:
    """RFC3339 times in UTC sort as texts; a job without one has not begun, so it is the newest."""

    def began(item: tuple[str, dict[str, Any]]) -> str:
        return str(item[1].get("creation_time") or item[1].get("start_time") or "~")

    return [Job(name, facts) for name, facts in sorted(jobs.items(), key=began, reverse=True)]


def find(manager: Manager, service: str, job: str | None) -> Job:
    """The named job, or the newest."""
    if job is None:
        jobs = newest_first(dict(manager.jobs(service)))
        if not jobs:
            raise JobUnknown(f"service {service} has no jobs yet", hint=f"start one with: hansa run {service} --async")
        return jobs[0]
    for name, facts in manager.jobs(service):
        if name == job:
            return Job(name, facts)
    raise JobUnknown(f"service {service} has no job {job}", hint=f"list them with: hansa job ls {service}")


def find_named(manager: Manager, service: str, job: str | None) -> tuple[str, Job]:
    """The same, and its service. A job's name alone is enough: it is what `hansa run --async` prints."""
    try:
        return service, find(manager, service, job)
    except errors.NotFound as error:
        named = str(manager.story(service).get("service") or "") if job is None else ""
        if not named:
            error.hint = error.hint or "name the service, then the job: hansa job show SERVICE JOB"
            raise
        return named, find(manager, named, service)


def log_of(manager: Manager, service: str, job: str, *, timestamps: bool = False) -> bytes:
    """The log, or nothing where a job has none yet."""
    try:
        return manager.log(service, job, timestamps=timestamps)
    except errors.NotFound:
        return b""


def fresh_part(shown: bytes, log: bytes) -> bytes:
    """What was added since; the whole log again if its beginning was cut away meanwhile."""
    return log[len(shown) :] if log.startswith(shown) else log


def follow(
    manager: Manager,
    service: str,
    job: str,
    screen: Screen,
    *,
    show: Callable[[bytes], None],
    timeout: float,
    timestamps: bool = False,
    interval: float = 1.0,
) -> Job:
    """Waits until the job has ended and hands each new piece of its log to `show`."""
    end = time.monotonic() + timeout
    shown, tells_why, told = b"", True, ""
    at_once = True  # what waits for a moment only needs no words
    with screen.waiting(f"job {job}") as bar:
        while True:
            seen = find(manager, service, job)
            why = ""
            if seen.status in _WAITING and tells_why:
                story = manager.story(job)
                why, tells_why = str(story.get("reason") or ""), bool(story)
            bar.title(f"job {job}: {seen.status}" + (f", {why}" if why else ""))
            if why not in ("", told) and not at_once and not screen.interactive:
                screen.note(f"job {job} waits: {why}")
                told = why
            at_once = False
            if seen.status not in _WAITING:
                log = log_of(manager, service, job, timestamps=timestamps)
                if fresh := fresh_part(shown, log):
                    with bar.paused():
                        show(fresh)
                shown = log
            if seen.status in ENDED:
                return seen
            if time.monotonic() + interval > end:
                because = f": {why}" if why else ""
                raise errors.Temporary(
                    f"job {job} has not ended after {timeout:.0f} s ({seen.status}{because})",
                    hint=f"it goes on; see it with: hansa job logs {service} {job} -f",
                )
            time.sleep(interval)
