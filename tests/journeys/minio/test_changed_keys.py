"""The password of MinIO's administrator was changed, and nobody told the manager yet."""

from pathlib import Path

import httpx

from journeys.conftest import signing_in
from journeys.events import minio_event
from journeys.minio.conftest import storing_in
from journeys.objects import store_of, upload
from journeys.waiting import all_jobs, ended_jobs, eventually
from real.identity_provider import IdentityProvider
from real.manager import running_manager
from real.minio import running_minio

FOLDERS = {
    "input": [{"storage_provider": "minio.default", "path": "keys/in"}],
    "output": [{"storage_provider": "minio.default", "path": "keys/out"}],
}
SERVICE = {"name": "keys", "image": "debian", "memory": "64Mi", "cpu": "0.1"}


def logged(alice: httpx.Client, job: str) -> str:
    return alice.get(f"/system/logs/keys/{job}").text


def test_jobs_and_their_outputs_wait_until_the_manager_knows_the_new_one(
    sign_in_provider: IdentityProvider, tmp_path: Path
) -> None:
    with running_minio(tmp_path) as minio, running_manager(storing_in(minio, sign_in_provider)) as manager:
        right = manager.settings
        eventually(lambda: "MinIO knows where to tell of uploads" in manager.log)
        alice = signing_in(manager, sign_in_provider)("alice")
        script = 'cp "$INPUT_FILE_PATH" "$TMP_OUTPUT_DIR/"; sleep 2'
        made = alice.post("/system/services", json={**SERVICE, "script": script, **FOLDERS})
        assert made.status_code == 201, made.text
        upload(alice, "keys", "in/first", b"first")
        eventually(lambda: "Running" in [job["status"] for job in all_jobs(alice, "keys").values()])
        manager.stop()
        manager.settings = {**right, "storage.secret_key": "as-it-was-before"}
        manager.start_unready()
        [first] = all_jobs(alice, "keys")
        second = alice.post("/job/keys", json=minio_event("keys", "in/first")).headers["x-hansa-job"]
        for job in (first, second):
            eventually(lambda job=job: "trying again until it works" in logged(alice, job))  # type: ignore[misc]
        manager.stop()
        manager.settings = right
        manager.start()
        assert {job["status"] for job in ended_jobs(alice, "keys", 2).values()} == {"Succeeded"}
        assert store_of(alice).get_object(Bucket="keys", Key="out/first")["Body"].read() == b"first"
