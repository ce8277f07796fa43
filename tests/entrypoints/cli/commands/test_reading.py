"""Lists, tables and documents: the same facts for people and machines, and no secrets."""

from dataclasses import dataclass

import pytest

from entrypoints.cli.small_server import TOKEN, Hansa, SmallServer
from hansa.entrypoints.cli.commands import quota, server, status
from hansa.entrypoints.cli.screen import Screen

SERVICE = {
    "name": "up", "image": "busybox", "cpu": "0.5", "memory": "1Gi", "token": TOKEN, "visibility": "private",
    "script": "#!/bin/sh\necho hi\n", "clusters": {"v": {"endpoint": "https://v", "auth_password": "hush"}},
    "environment": {"variables": {}, "secrets": {"K": "hush"}},
}  # fmt: skip


def test_services(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("GET /system/services", [{**SERVICE, "deployment": {"state": "ready"}}, {**SERVICE, "name": "jobs"}])
    ran = hansa("service", "ls")
    assert [line.split()[:2] for line in ran.out.splitlines()] == [["NAME", "STATE"], ["up", "ready"], ["jobs", "jobs"]]
    machine = hansa("service", "ls", "--json")
    assert [row["name"] for row in machine.json()] == ["up", "jobs"]
    assert TOKEN not in ran.out + machine.out


def test_a_service_hides_its_secrets_unless_asked(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("GET /system/services/up", SERVICE)
    admin.on("GET /system/services/up/deployment", {"state": "ready", "resource_kind": "exposed_service"})
    for arguments in (("show", "up"), ("show", "up", "--json")):
        ran = hansa("service", *arguments)
        assert ran.code == 0
        assert TOKEN not in ran.out
        assert "hush" not in ran.out
        assert "ready" in ran.out
    assert "script: |\n  #!/bin/sh\n  echo hi" in hansa("service", "show", "up").out
    assert hansa("service", "show", "up", "--secrets", "--json").json()["token"] == TOKEN
    assert hansa("service", "show", "none").code == 4


def test_a_service_without_a_deployment_does_not_look_broken(admin: SmallServer, hansa: Hansa) -> None:
    nothing = {"state": "unavailable", "reason": "not exposed", "resource_kind": "unavailable"}
    admin.on("GET /system/services/up", {**SERVICE, "deployment": nothing})
    assert hansa("service", "show", "up").out.endswith("deployment: jobs only\n")
    assert hansa("service", "show", "up", "--json").json()["deployment"] == nothing


def test_the_version_is_an_option_too(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("GET /system/info", {"version": "4.1"})
    assert hansa("--version") == hansa("version")
    assert "4.1" in hansa("--version").out


def test_switching_and_removing(admin: SmallServer, hansa: Hansa) -> None:
    for action in ("start", "stop", "restart"):
        admin.on(f"POST /system/services/up/{action}", {"state": "pending", "reason": action})
        assert hansa("service", action, "up").out == f"up: pending {action}\n"
    admin.on("DELETE /system/services/up", b"", status=204)
    assert hansa("service", "rm", "up").code == 2  # no terminal, no --yes
    assert hansa("service", "rm", "up", "--yes").code == 0
    assert hansa("service", "rm", "none", "-y").code == 4


def test_logs_of_a_deployment_or_of_the_newest_job(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("GET /system/services/up/deployment/logs", {"available": True, "entries": [{"message": "hello"}]})
    assert hansa("service", "logs", "up").out == "hello\n"
    admin.on("GET /system/services/j/deployment/logs", {"available": False, "message": "no"})
    admin.on("GET /system/logs/j", {"jobs": {"j-1": {"status": "Succeeded"}}}).on(
        "GET /system/logs/j/j-1", b"1\n2\n3\n"
    )
    assert hansa("service", "logs", "j", "--tail", "2").out == "2\n3\n"
    assert hansa("job", "logs", "j").out == "1\n2\n3\n"
    assert hansa("job", "logs", "j", "-f").out == "1\n2\n3\n"
    assert hansa("job", "logs", "j", "--json").json() == {"service": "j", "job": "j-1", "log": "1\n2\n3\n"}
    assert hansa("job", "show", "j", "j-1", "--json").json() == {"name": "j-1", "status": "Succeeded"}
    assert hansa("job", "show", "j", "j-2").code == 4
    assert "Succeeded" in hansa("job", "ls", "j").out


def test_a_job_tells_why_it_waits_and_where_it_went(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("GET /system/logs/j", {"jobs": {"j-1": {"status": "Pending"}}})
    story = {"name": "j-1", "status": "Pending", "reason": "it waits for room", "attempt": 0}
    admin.on("GET /v1/jobs/j-1", story)
    assert "it waits for room" in hansa("job", "show", "j").out
    assert hansa("job", "show", "j", "--json").json() == {
        "name": "j-1",
        "status": "Pending",
        "reason": "it waits for room",
    }
    admin.on("GET /system/logs/k", {"jobs": {f"k-{number}": {"status": "Running"} for number in (1, 2, 3)}})
    went = {"cluster_id": "visby", "service": "j-v"}
    for name, phase in (("k-1", "away"), ("k-2", "done"), ("k-3", "back")):
        admin.on(f"GET /v1/jobs/{name}", {**story, "reason": "", "delegation": {**went, "phase": phase}})
    out = hansa("job", "show", "k", "k-1").out
    assert "runs at" in out
    assert "visby/j-v" in out
    assert "reason" not in out
    assert "ran at" in hansa("job", "show", "k", "k-2").out
    assert "visby" not in hansa("job", "show", "k", "k-3").out


def test_removing_jobs(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("DELETE /system/logs/j", b"", status=204).on("DELETE /system/logs/j/j-1", b"", status=204)
    assert hansa("job", "rm", "j", "j-1", "-y").code == 0
    assert hansa("job", "rm", "j", "-y", "--all").code == 0
    assert hansa("job", "rm", "j", "j-1", "-y", "--all").code == 2
    assert [(seen.path, seen.query) for seen in admin.seen] == [
        ("/system/logs/j/j-1", {}), ("/system/logs/j", {"all": "true"})
    ]  # fmt: skip


def test_status_reads_millicores_and_missing_zeros(admin: SmallServer, hansa: Hansa) -> None:
    node = {"name": "n1", "cpu": {"capacity_cores": 4000, "usage_cores": 500}, "memory": {"capacity_bytes": 2**33}}
    found = {
        "cluster": {"nodes_count": 1, "metrics": {"cpu": {"total_free_cores": 3500}}, "nodes": [node]},
        "oscar": {"ready": True, "jobs_count": 2, "pods": {"total": 1, "states": {"Running": 1, "Failed": 0}}},
    }
    admin.on("GET /system/status", found)
    assert status.nodes(found) == [("n1", None, "3.5", "4", "8Gi", "8Gi", None)]
    assert ("pods", "1 running") in status.summary(found)
    assert "3.5" in hansa("status").out
    assert hansa("status", "--json").json() == found
    assert status.nodes({"cluster": {"nodes": None}}) == []
    assert ("cpu free", "1.5") in status.summary({"numberNodes": 2, "cpuFreeTotal": 1500, "memoryFreeTotal": 0})


def test_config_hides_the_storages_keys(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("GET /system/config", {"config": {"name": "oscar"}, "minio_provider": {"secret_key": "hush"}})
    assert "hush" not in hansa("config").out + hansa("config", "--json").out
    assert "hush" in hansa("config", "--secrets").out


def test_quotas(admin: SmallServer, hansa: Hansa) -> None:
    answer = {"user_id": "u", "resources": {"cpu": {"max": 2000, "used": 500}, "memory": {"max": 2**31, "used": 0}},
              "volumes": {"disk": {"max": "7Gi", "used": "0"}, "max_disk_per_volume": "5Gi"}}  # fmt: skip
    admin.on("GET /system/quotas/user/u", answer).on("PUT /system/quotas/user/u", answer, X_Hansa_Warning="who is u?")
    assert quota.rows(answer)[:2] == [("cpu", "0.5", "2"), ("memory", "0", "2Gi")]
    assert hansa("quota", "show", "u").code == 0
    assert hansa("quota", "show").code == 2
    assert hansa("quota", "set", "u").code == 2
    changed = hansa("quota", "set", "u", "--cpu", "4", "--volumes", "3", "--buckets", "2")
    assert (changed.code, changed.err) == (0, "warning: who is u?\n")
    assert admin.calls("PUT")[0].json() == {"cpu": "4", "volumes": {"volumes": "3"}, "minio": {"buckets": "2"}}


def test_volumes(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("GET /system/volumes", [{"name": "v", "size": "1Gi", "status": {"phase": "Bound"}}])
    admin.on("POST /system/volumes", {"name": "v"}, status=201).on("DELETE /system/volumes/v", b"attached", status=400)
    assert hansa("volume", "ls").out.split() == ["NAME", "SIZE", "PHASE", "v", "1Gi", "Bound"]
    assert hansa("volume", "rm", "w").err.startswith("error: remove volume w with everything on it?: not on a terminal")
    assert hansa("volume", "rm", "w", "-y").err.splitlines()[-1] == "hint: list yours with: hansa volume ls"
    assert hansa("volume", "create", "v", "--size", "1Gi").code == 0
    assert hansa("volume", "create", "v", "--size", "huge").code == 1
    ran = hansa("volume", "rm", "v", "-y")
    assert (ran.code, ran.err) == (1, "error: attached\n")


def test_version_needs_no_cluster(hansa: Hansa, admin: SmallServer) -> None:
    ran = hansa("version", "--json")  # the cluster answers 404
    assert (ran.code, ran.json()["cluster"]) == (0, None)


@dataclass(frozen=True)
class Check:
    name: str
    ok: bool | None
    detail: str = ""
    hint: str = ""


def test_a_doctors_report(capsys: pytest.CaptureFixture[str]) -> None:
    checks = [Check("bwrap", True, "0.8"), Check("kvm", None, "no /dev/kvm", "VMs will be slow")]
    assert server.report(checks, Screen()) == 0
    assert server.report([*checks, Check("python", False, "3.9", "install 3.11")], Screen()) == 1
    assert capsys.readouterr().err.splitlines()[-2:] == ["error: python: 3.9", "hint: install 3.11"]


def test_where_volumes_are_attached(admin: SmallServer, hansa: Hansa) -> None:
    at = [{"service_name": "up", "mount_path": "/data"}]
    admin.on("GET /system/volumes", [{"name": "v", "attachments": at, "status": {"phase": "in_use"}}])
    assert hansa("volume", "ls").out.split() == ["NAME", "ATTACHMENTS", "PHASE", "v", "up:/data", "in_use"]


@pytest.mark.parametrize("command", ["show", "logs"])
def test_a_job_by_its_name_alone(admin: SmallServer, hansa: Hansa, command: str) -> None:
    admin.on("GET /v1/jobs/up-7", {"name": "up-7", "service": "up"})
    admin.on("GET /system/logs/up", {"jobs": {"up-7": {"status": "Succeeded"}}})
    admin.on("GET /system/logs/up/up-7", b"Succeeded\n")
    ran = hansa("job", command, "up-7")
    assert ran.code == 0, ran.err
    assert "Succeeded" in ran.out
    gone = hansa("job", command, "down-7")
    assert (gone.code, "there is no service down-7" in gone.err) == (4, True)
    assert gone.err.endswith("hint: name the service, then the job: hansa job show SERVICE JOB\n")


def test_a_backup_without_a_terminal_wants_a_passphrase(hansa: Hansa) -> None:
    ran = hansa("hub", "backup", "file")
    assert ran.code == 2
    assert "give --passphrase-file, or set HANSA_HUB_PASSPHRASE" in ran.err
