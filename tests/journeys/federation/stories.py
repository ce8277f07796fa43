"""What the stories of a federation share: definitions, waiting, and looking at what came of a job."""

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import httpx

from real.federation import Federation

T = TypeVar("T")
PATIENCE = 40.0
_PAUSE = 0.05
_numbers = itertools.count(1)

# Says where it ran: a job sees the name of its service, which differs from member to member.
WHERE = 'echo "$INPUT_FILE_PATH" >&2; cat "$INPUT_FILE_PATH"; echo "by $OSCAR_SERVICE_NAME" > "$TMP_OUTPUT_DIR/where"'
MARKS = ("oscar.grycap/origin-cluster", "oscar.grycap/origin-service", "oscar.grycap/federation-worker")


def fresh(stem: str) -> str:
    return f"{stem}-{next(_numbers)}"


def eventually(ask: Callable[[], T], seconds: float = PATIENCE, what: str = "") -> T:
    """The first answer that counts as true; fails with the last one when the time is over."""
    end = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer:
            return answer
        assert time.monotonic() < end, f"still not {what or 'so'} after {seconds:g} s: {answer!r}"
        time.sleep(_PAUSE)


def member(cluster: str, service: str, priority: int = 0, **more: Any) -> dict[str, Any]:
    return {"type": "oscar", "cluster_id": cluster, "service_name": service, "priority": priority, **more}


def federated(
    name: str,
    members: Sequence[dict[str, Any]],
    *,
    topology: str = "star",
    delegation: str = "static",
    token: str = "",
    origin: str = "lubeck",
    federation: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A definition as a user writes it; cpu 0.2 is more than the small cluster `lubeck` ever has."""
    secrets = {"refresh_token": token} if token else {}
    return {
        "name": name,
        "cluster_id": origin,
        "cpu": "0.2",
        "memory": "64Mi",
        "image": "debian",
        "script": WHERE,
        "input": [{"storage_provider": "minio.default", "path": f"{name}/in"}],
        "output": [{"storage_provider": "minio.default", "path": f"{name}/out"}],
        "environment": {"variables": {"A": "1"}, "secrets": secrets},
        "federation": {
            "topology": topology,
            "delegation": delegation,
            "members": list(members),
            **(federation or {}),
        },
        **more,
    }


def create(client: httpx.Client, definition: dict[str, Any]) -> None:
    answer = client.post("/system/services", json=definition)
    assert answer.status_code == 201, answer.text


def definition_of(client: httpx.Client, service: str) -> dict[str, Any]:
    answer = client.get(f"/system/services/{service}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def absent(client: httpx.Client, service: str) -> bool:
    return client.get(f"/system/services/{service}").status_code == 404


def members_at(client: httpx.Client, service: str) -> list[str]:
    """The members a service lists, as cluster/service."""
    answer = client.get(f"/system/federation/{service}")
    assert answer.status_code == 200, answer.text
    return [f"{one['cluster_id']}/{one['service_name']}" for one in answer.json()["members"] or []]


def state_of(client: httpx.Client, service: str) -> dict[str, tuple[bool, bool]]:
    """Whether each member is reachable and in sync, as its coordinator finds it now."""
    answer = client.get(f"/system/federation/{service}", params={"state": "true"})
    assert answer.status_code == 200, answer.text
    return {one["member"]: (one["reachable"], one["in_sync"]) for one in answer.json()["state"]}


def in_sync(client: httpx.Client, service: str) -> bool:
    return set(state_of(client, service).values()) == {(True, True)}


def submit(client: httpx.Client, service: str, body: bytes = b"a parcel") -> str:
    answer = client.post(f"/job/{service}", content=body)
    assert answer.status_code == 201, answer.text
    return answer.headers["x-hansa-job"]


def story_of(client: httpx.Client, job: str) -> dict[str, Any]:
    answer = client.get(f"/v1/jobs/{job}")
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def ended(client: httpx.Client, job: str, seconds: float = PATIENCE) -> dict[str, Any]:
    """The job's story, once it has ended."""

    last: dict[str, Any] = {}

    def look() -> dict[str, Any]:
        last.update(story_of(client, job))
        return last if last["status"] in ("Succeeded", "Failed") else {}

    try:
        return eventually(look, seconds, f"the end of {job}")
    except AssertionError as error:
        raise AssertionError(f"{error}; it is {last.get('status')}: {last.get('reason')}") from None


def outputs(hansa: Federation, client: httpx.Client, bucket: str, folder: str = "out/") -> dict[str, bytes]:
    """Everything below a folder of a bucket, by key."""
    store = hansa.store(client)
    found = store.list_objects_v2(Bucket=bucket, Prefix=folder).get("Contents", [])
    return {
        one["Key"]: store.get_object(Bucket=bucket, Key=one["Key"])["Body"].read()
        for one in found
        if not one["Key"].endswith("/")
    }


def nothing_runs(client: httpx.Client, service: str) -> bool:
    """Also the runs that lost their right have ended, so what is not visible now never will be."""
    listed = client.get(f"/system/logs/{service}").json()["jobs"]
    return all(job["status"] in ("Succeeded", "Failed") for job in listed.values())
