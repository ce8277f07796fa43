"""A manager by the chart, with no right but the chart's: it runs what users bring, and keeps it through upgrades."""

import asyncio
import base64
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from deploy.kubernetes import installation
from deploy.kubernetes.installation import Installation
from journeys.waiting import all_jobs, eventually
from real.kubernetes import kubernetes_manager
from real.kubernetes.fixtures import fresh_namespace

pytestmark = pytest.mark.timeout(900)
PATIENCE = 120.0
COUNT = 'n=$(wc -c < "$INPUT_FILE_PATH"); echo counted; echo "$n" > "$TMP_OUTPUT_DIR/count"'
SERVE = """\
cd /tmp && echo ahoy > index.html && exec python3 -m http.server 8080
"""


@pytest.fixture
async def values(release: Installation) -> AsyncIterator[dict[str, Any]]:
    """A cluster of its own, whose namespaces go with it."""
    cluster = f"c-{secrets.token_hex(4)}"
    try:
        yield {
            "cluster": {"id": cluster},
            "settings": {
                "cluster": {"services_namespace": f"svc-{cluster[2:]}"},
                "kubernetes": {"pull_policy": "IfNotPresent"},  # there is no registry
            },
        }
    finally:
        await kubernetes_manager.clear(release.access, cluster)


def create(door: httpx.Client, name: str, script: str, **more: Any) -> None:
    made = {"name": name, "image": "debian", "script": script, "cpu": "0.05", "memory": "64Mi", **more}
    answer = door.post("/system/services", json=made)
    assert answer.status_code == 201, answer.text


def use(door: httpx.Client) -> None:
    """A job with files, a call that waits, a service that stays; each of them in pods."""
    create(door, "count", COUNT, output=[{"storage_provider": "minio.default", "path": "harbour/out"}])
    assert "counted" in run_job(door, "count", b"twelve bytes")
    assert "out/count" in door.get("/system/buckets/harbour").text
    answer = door.post("/run/count", content=base64.b64encode(b"abc"), auth=bearer(door, "count"))
    assert (answer.status_code, base64.b64decode(answer.text)) == (200, b"3\n"), answer.text
    create(door, "hello", SERVE, expose={"api_port": 8080, "min_scale": 1, "max_scale": 1, "rewrite_target": True})
    eventually(lambda: door.get("/system/services/hello/exposed/").text == "ahoy\n", PATIENCE, "the service answers")


def bearer(door: httpx.Client, service: str) -> Callable[[httpx.Request], httpx.Request]:
    """The admin's password starts no jobs; a service's own token does."""
    token = door.get(f"/system/services/{service}").json()["token"]

    def sign(request: httpx.Request) -> httpx.Request:
        request.headers["Authorization"] = f"Bearer {token}"
        return request

    return sign


def run_job(door: httpx.Client, service: str, body: bytes) -> str:
    """Its log, when it has ended well."""
    accepted = door.post(f"/job/{service}", content=body, auth=bearer(door, service))
    assert accepted.status_code == 201, accepted.text
    job = accepted.headers["x-hansa-job"]

    def status() -> str:
        found = str(all_jobs(door, service).get(job, {}).get("status", ""))
        return found if found in ("Succeeded", "Failed") else ""

    ended = eventually(status, PATIENCE, f"the end of {job}")
    log = door.get(f"/system/logs/{service}/{job}").text
    assert ended == "Succeeded", log
    return log


async def test_a_manager_runs_services_and_keeps_them(
    release: Installation, volume: str, values: dict[str, Any]
) -> None:
    values |= {"persistence": installation.on(volume)}
    await release.upgrade(values)
    first = await release.pod()
    with await release.door(8080) as door:
        assert door.get("/ready").json() == {"ready": True, "missing": []}
    assert await release.lacks() == []

    # Users get this address in signed links too, so it is one that we outside reach; it is known only now.
    values |= {"storage": {"publicEndpoint": f"http://{await release.address()}:8333"}}
    await release.upgrade(values)
    assert (await release.pod()).metadata.uid != first.metadata.uid
    with await release.door(8080) as door:
        await asyncio.to_thread(use, door)

    changed = {**values, "settings": {**values["settings"], "jobs": {"run_limit": 120}}}
    await release.upgrade(changed)
    with await release.door(8080) as door:
        assert {one["name"] for one in door.get("/system/services").json()} == {"count", "hello"}
        assert [one["status"] for one in all_jobs(door, "count").values()] == ["Succeeded"]
        assert "out/count" in door.get("/system/buckets/harbour").text
        again = "the service answers again"
        await asyncio.to_thread(
            eventually, lambda: door.get("/system/services/hello/exposed/").text == "ahoy\n", PATIENCE, again
        )

    await release.uninstall()
    assert await release.left() == {
        ("PersistentVolumeClaim", f"{release.fullname}-data"),
        ("Secret", release.fullname),
    }


@pytest.mark.deep
async def test_a_manager_of_one_namespace_needs_no_right_beyond(release: Installation, values: dict[str, Any]) -> None:
    async with contextlib.AsyncExitStack() as undo:
        work = await undo.enter_async_context(fresh_namespace(release.access))
        values |= {"kubernetes": {"namespaces": [work]}, "persistence": {"enabled": False, "keep": False}}
        values["rbac"] = {"nodes": False}
        values["settings"] |= {"jobs": {"cpu": "2", "memory": "1Gi"}}
        await release.upgrade(values)
        assert not [kind for kind, _ in await release.left() if kind.startswith("Cluster")]
        missed = {one.partition(":")[0] for one in await release.lacks()}
        assert missed == {"right nodes", "right endpointslices.discovery.k8s.io"}  # it does without them
        values |= {"storage": {"publicEndpoint": f"http://{await release.address()}:8333"}}
        await release.upgrade(values)
        with await release.door(8080) as door:
            await asyncio.to_thread(use, door)
        await release.uninstall()
    assert await release.left() == set()
    assert await release.secrets() == await release.secrets({"hansa/cluster": values["cluster"]["id"]})
