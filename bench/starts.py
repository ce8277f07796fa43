"""How long from "accepted", or from the end of an upload, until the script's first line runs?"""

import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import boto3

from bench.figures import Figure, Part, Sizes, percentile
from real.manager import Manager, running_manager

_FIRST_LINE = "date +%s%N"  # the script's; a shell has no clock of its own
_PATIENCE = 60.0


def starts(sizes: Sizes) -> Part:
    with running_manager() as manager:
        by_job, by_upload = _ByJob.open(manager), _ByUpload.open(manager)
        ways: dict[str, Callable[[], float]] = {"bare": _bare, "job": by_job.once, "upload": by_upload.once}
        told: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(sizes.starts + 1):
            for name, once in ways.items():
                milliseconds = once()
                if turn:  # the first one warms up
                    told[name].append(milliseconds)
        by_upload.close()
    median = {name: statistics.median(values) for name, values in told.items()}
    above = median["job"] - median["bare"]
    return Part(
        "Starting jobs",
        f"{sizes.starts} starts of each kind, in turns, one at a time. A bare sandboxed process is bubblewrap with the "
        "same namespaces, started directly; a script's first line is `date`.",
        (
            Figure(
                "accepted to running, above a bare sandboxed process",
                f"{above:+.1f} ms",
                "at most +60 ms",
                above <= 60,
                "from the answer 201 to the script's first line: queue, database, folders, limits, sandbox",
            ),
            Figure("accepted to running", _times(told["job"])),
            Figure("bare sandboxed process", _times(told["bare"]), means="from fork to the first line"),
            Figure(
                "upload to running",
                _times(told["upload"]),
                "below 150 ms",
                median["upload"] < 150,
                "from the store's answer to PUT to the first line, the download of the input included",
            ),
        ),
    )


def _times(values: list[float]) -> str:
    return f"{statistics.median(values):.1f} ms (95 %: {percentile(values, 0.95):.1f} ms)"


def _bare() -> float:
    """Milliseconds from the fork of bubblewrap to the first line inside."""
    with tempfile.TemporaryDirectory() as work:
        system = [
            word for folder in ("/usr", "/bin", "/sbin", "/lib", "/lib64") for word in ("--ro-bind-try", folder, folder)
        ]
        command = [
            shutil.which("bwrap") or "bwrap",
            *(
                "--unshare-user",
                "--unshare-pid",
                "--unshare-ipc",
                "--unshare-uts",
                "--unshare-net",
                "--unshare-cgroup-try",
            ),
            *(
                "--die-with-parent",
                "--cap-drop",
                "ALL",
                *system,
                "--ro-bind-try",
                "/etc/ld.so.cache",
                "/etc/ld.so.cache",
            ),
            *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", work, "/job", "--chdir", "/job"),
            *("--", "/bin/sh", "-c", _FIRST_LINE),
        ]
        began = time.time_ns()
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=_PATIENCE)
    return (int(done.stdout) - began) / 1e6


def _definition(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "debian", "cpu": "1", "memory": "64Mi", "script": _FIRST_LINE, **more}


def _stamp(manager: Manager, service: str, job: str) -> int:
    """What the script's first line printed."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        time.sleep(0.1)  # not busily: asking takes from what is measured
        log = manager.admin.get(f"/system/logs/{service}/{job}").text
        if found := re.search(r"^\d{19}$", log, re.MULTILINE):
            return int(found[0])
    raise RuntimeError(f"job {job} printed nothing: {log}")


@dataclass(frozen=True, slots=True)
class _ByJob:
    manager: Manager
    token: str

    @classmethod
    def open(cls, manager: Manager) -> "_ByJob":
        assert manager.admin.post("/system/services", json=_definition("bench-job")).status_code == 201
        return cls(manager, manager.admin.get("/system/services/bench-job").json()["token"])

    def once(self) -> float:
        accepted = self.manager.bearer(self.token).post("/job/bench-job", content=b"x")
        began = time.time_ns()
        assert accepted.status_code == 201, accepted.text
        return (_stamp(self.manager, "bench-job", accepted.headers["x-hansa-job"]) - began) / 1e6


@dataclass(slots=True)
class _ByUpload:
    manager: Manager
    store: Any
    count: int = 0

    @classmethod
    def open(cls, manager: Manager) -> "_ByUpload":
        folder = [{"storage_provider": "minio.default", "path": "bench-upload/in"}]
        made = manager.admin.post("/system/services", json=_definition("bench-upload", input=folder))
        assert made.status_code == 201, made.text
        told = manager.admin.get("/system/config").json()["minio_provider"]
        store = boto3.client(
            "s3",
            endpoint_url=told["endpoint"],
            aws_access_key_id=told["access_key"],
            aws_secret_access_key=told["secret_key"],
            region_name=told["region"],
        )
        return cls(manager, store)

    def once(self) -> float:
        before = self._jobs()
        self.count += 1
        self.store.put_object(Bucket="bench-upload", Key=f"in/{self.count}", Body=b"x")
        began = time.time_ns()
        end = time.monotonic() + _PATIENCE
        while not (fresh := self._jobs() - before):
            assert time.monotonic() < end, "the upload started no job"
            time.sleep(0.1)
        return (_stamp(self.manager, "bench-upload", fresh.pop()) - began) / 1e6

    def _jobs(self) -> set[str]:
        return set(self.manager.admin.get("/system/logs/bench-upload").json()["jobs"])  # the newest ones come first

    def close(self) -> None:
        self.store.close()
