"""A manager on a disk that is smaller than what a run has by default: jobs run, and no accepted one is lost."""

import pytest

from journeys.waiting import ended_jobs, eventually
from real.manager import running_manager


def test_the_default_adapts_and_too_much_by_the_operator_is_refused_before_any_job_is_touched() -> None:
    with running_manager({"jobs.disk": "200Mi", "quotas.min_disk_per_volume": "16Mi"}) as manager:
        admin = manager.admin
        usual = {"name": "small", "script": "echo ran", "image": "debian", "memory": "64Mi", "cpu": "0.1"}
        assert admin.post("/system/services", json=usual).status_code == 201
        caller = manager.bearer(admin.get("/system/services/small").json()["token"])
        first = caller.post("/job/small").headers["x-hansa-job"]
        assert ended_jobs(admin, "small", 1)[first]["status"] == "Succeeded"
        assert "each run has less of it than usual" in manager.log

        # What is left of the disk is promised to a volume: the next one waits, and says why.
        volume = {"name": "models", "size": "150Mi"}
        eventually(lambda: admin.post("/system/volumes", json=volume).status_code == 201)  # once the first gave it back
        second = caller.post("/job/small").headers["x-hansa-job"]
        assert "it needs 100Mi of disk" in admin.get(f"/v1/jobs/{second}").json()["reason"]
        manager.stop()
        right = manager.settings
        manager.settings = {**right, "jobs.disk_per_run": "1Gi"}
        with pytest.raises(RuntimeError, match=r"jobs\.disk_per_run: 1Gi for each run, and the disk has 200Mi"):
            manager.start()
        manager.settings = right
        manager.start()
        assert admin.get(f"/v1/jobs/{second}").json()["status"] == "Pending"
        assert admin.delete("/system/volumes/models").status_code == 204
        assert ended_jobs(admin, "small", 2)[second]["status"] == "Succeeded"
