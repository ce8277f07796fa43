"""How stories wait at the HTTP boundary: they ask again until the answer is there, for a bounded time."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

import httpx

T = TypeVar("T")
PATIENCE = 30.0
_PAUSE = 0.03


def eventually(ask: Callable[[], T], seconds: float = PATIENCE, what: str = "") -> T:
    """The first answer that counts as true; fails with the last one when the time is over."""
    end = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer:
            return answer
        assert time.monotonic() < end, f"still not {what or 'so'} after {seconds:g} s: {answer!r}"
        time.sleep(_PAUSE)


def ended_jobs(client: httpx.Client, service: str, count: int) -> dict[str, dict[str, Any]]:
    """The service's jobs, once `count` of them have ended."""

    def look() -> dict[str, dict[str, Any]]:
        jobs = all_jobs(client, service)
        ended = [job for job in jobs.values() if job["status"] in ("Succeeded", "Failed")]
        return jobs if len(ended) >= count else {}

    return eventually(look, what=f"{count} ended jobs of {service}")


def all_jobs(client: httpx.Client, service: str) -> dict[str, dict[str, Any]]:
    """Every page, as oscar-cli reads them: an empty page first, then `next_page` until there is none."""
    jobs: dict[str, dict[str, Any]] = {}
    page = ""
    while True:
        answer = client.get(f"/system/logs/{service}", params={"page": page})
        assert answer.status_code == 200, answer.text
        body = answer.json()
        jobs.update(body["jobs"])
        page = body.get("next_page", "")
        if not page:
            return jobs


def run_job(client: httpx.Client, service: str, body: bytes = b"", owner: httpx.Client | None = None) -> str:
    """Submits a job, waits for its end and gives its log."""
    accepted = client.post(f"/job/{service}", content=body)
    assert accepted.status_code == 201, accepted.text
    job = accepted.headers["x-hansa-job"]
    reader = owner or client

    def over() -> bool:
        return all_jobs(reader, service).get(job, {}).get("status") in ("Succeeded", "Failed")

    eventually(over, what=f"the end of {job}")
    log = reader.get(f"/system/logs/{service}/{job}")
    assert log.status_code == 200, log.text
    return log.text
