"""What was in a deleted volume is gone for good, whatever the machine could mount on that day."""

from pathlib import Path
from typing import Any

import pytest

from hansa.drivers.local.disks import trouble
from journeys.waiting import ended_jobs
from real.manager import Manager, running_manager

SETTINGS: dict[str, Any] = {"jobs.disk_per_run": "16Mi", "quotas.min_disk_per_volume": "16Mi"}
VOLUME = {"name": "models", "mount_path": "/data"}


def ran(manager: Manager, name: str, script: str) -> dict[str, Any]:
    """How a job with this volume ended, and its log."""
    client = manager.admin
    usual = {"name": name, "script": script, "image": "debian", "memory": "64Mi", "cpu": "0.1", "volume": VOLUME}
    assert client.post("/system/services", json=usual).status_code == 201
    token = client.get(f"/system/services/{name}").json()["token"]
    job = manager.bearer(token).post(f"/job/{name}").headers["x-hansa-job"]
    ended_jobs(client, name, 1)
    found: dict[str, Any] = client.get(f"/v1/jobs/{job}").json()
    found["log"] = client.get(f"/system/logs/{name}/{job}").text
    assert client.delete(f"/system/services/{name}").status_code == 204
    return found


@pytest.mark.skipif(bool(trouble()), reason=f"no images here: {trouble()}")
def test_a_volume_deleted_while_images_cannot_be_used_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "mkfs.ext4"
    broken.write_text("#!/bin/sh\necho no file systems today >&2\nexit 1\n")
    broken.chmod(0o755)
    with running_manager(SETTINGS) as manager:
        admin = manager.admin
        assert admin.post("/system/volumes", json={"name": "models", "size": "16Mi"}).status_code == 201
        assert ran(manager, "writes", "echo secret > /data/kept; sync")["status"] == "Succeeded"

        with monkeypatch.context() as crippled:
            crippled.setenv("PATH", str(tmp_path), prepend=":")
            manager.restart()
        assert admin.get("/v1/node").json()["isolation"]["disk"] == "watched"
        standing = admin.get("/system/volumes/models").json()["status"]
        assert standing["phase"] == "pending"
        assert "no file systems today" in standing["reason"]
        assert "no file systems today" in ran(manager, "waits", "ls /data")["reason"]
        assert admin.delete("/system/volumes/models").status_code == 204
        assert admin.post("/system/volumes", json={"name": "models", "size": "16Mi"}).status_code == 201
        assert "secret" not in ran(manager, "looks", "cat /data/* || true")["log"]

        manager.restart()
        assert admin.get("/v1/node").json()["isolation"]["disk"] == "image"
        looked = ran(manager, "looks-again", "ls -A /data; cat /data/* || true")
        assert looked["status"] == "Succeeded"
        assert "secret" not in looked["log"]
        assert "kept" not in looked["log"]
