"""A manager in trouble, as the fault tests see it: its API, its store, its processes and their control groups."""

import contextlib
import glob
import hashlib
import os
import re
import signal
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import httpx
from botocore.config import Config

from journeys.waiting import all_jobs, eventually
from real.manager import Manager

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

UIDS = 256  # that belong to one manager
_CGROUPS = Path("/sys/fs/cgroup")
_OUTPUT = re.compile(r"(?P<number>[^.]+)\.(?P<run>[0-9a-f-]{36})")

# One object for each run, named by the input and by a word that no other run has: a job that ran twice and stored
# both shows as two objects, one that was cut short has no last line. Every tenth takes a while to be stored.
PROOF = """
number=$(cat "$INPUT_FILE_PATH")
run=$(cat /proc/sys/kernel/random/uuid)
out="$TMP_OUTPUT_DIR/$number.$run"
echo "begin $run" > "$out"
sleep {seconds}
case "$number" in *0) head -c 2000000 /dev/zero | tr '\\0' . >> "$out"; echo >> "$out";; esac
echo "end $run" >> "$out"
"""


@dataclass(slots=True)
class Service:
    name: str
    token: str

    @property
    def bucket(self) -> str:
        return self.name


@dataclass(frozen=True)
class Scene:
    manager: Manager

    @property
    def admin(self) -> httpx.Client:
        return self.manager.admin

    @cached_property
    def objects(self) -> "S3Client":
        """The store's keys and address stay over restarts."""
        told = self.admin.get("/system/config").json()["minio_provider"]
        return boto3.client(
            "s3",
            endpoint_url=told["endpoint"],
            aws_access_key_id=told["access_key"],
            aws_secret_access_key=told["secret_key"],
            region_name=told["region"],
            config=Config(
                retries={"total_max_attempts": 1},
                connect_timeout=5,
                read_timeout=20,
                s3={"addressing_style": "path"},
                max_pool_connections=16,
            ),
        )

    def close(self) -> None:
        if "objects" in self.__dict__:  # asking would make one
            self.objects.close()

    def service(self, stem: str, script: str = PROOF.format(seconds="0.2"), **fields: Any) -> Service:
        """A service of the admin with an input and an output folder in a bucket of its name."""
        name = f"{stem}-{uuid.uuid4().hex[:8]}"
        answer = self.create(name, script, **fields)
        assert answer.status_code == 201, answer.text
        return self.known(name)

    def create(self, name: str, script: str = "true", **fields: Any) -> httpx.Response:
        return self.admin.post("/system/services", json=definition(name, script, **fields))

    def known(self, name: str) -> Service:
        service = Service(name, self.admin.get(f"/system/services/{name}").json()["token"])
        self.manager.bearer(service.token)  # made here once, for the threads of a test to share
        return service

    def submit(self, service: Service, body: str = "", job: str = "") -> str:
        headers = {"X-Delegated-Job-ID": job} if job else {}
        answer = self.manager.bearer(service.token).post(f"/job/{service.name}", content=body, headers=headers)
        assert answer.status_code == 201, answer.text
        return str(answer.headers["x-hansa-job"])

    def upload(self, service: Service, name: str, content: str | None = None) -> None:
        body = (name if content is None else content).encode()
        self.objects.put_object(Bucket=service.bucket, Key=f"in/{name}", Body=body)

    def keys(self, bucket: str, folder: str) -> list[str]:
        pages = self.objects.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{folder}/")
        names = [one["Key"].removeprefix(f"{folder}/") for page in pages for one in page.get("Contents", [])]
        return [name for name in names if name]

    def outputs(self, service: Service) -> list[str]:
        return self.keys(service.bucket, "out")

    def has_outputs(self, service: Service, count: int) -> bool:
        return len(self.outputs(service)) >= count

    def jobs(self, service: Service) -> dict[str, dict[str, Any]]:
        return all_jobs(self.admin, service.name)

    def statuses(self, service: Service) -> list[str]:
        return [job["status"] for job in self.jobs(service).values()]

    def log(self, service: Service, job: str) -> str:
        return self.admin.get(f"/system/logs/{service.name}/{job}").text

    def await_end(self, service: Service, count: int, seconds: float = 60.0) -> list[str]:
        """How all jobs ended, once there are `count` and none waits or runs."""

        def ended() -> list[str]:
            found = self.statuses(service)
            over = len(found) >= count and not {"Pending", "Running"} & set(found)
            return found if over else []

        return eventually(ended, seconds, f"{count} jobs of {service.name} ended")

    def assert_proofs(self, service: Service, sure: set[str], perhaps: frozenset[str] = frozenset()) -> None:
        """Each job of `PROOF` ran to its end and left what exactly one run made."""
        statuses, stored = self.statuses(service), self.outputs(service)
        failed = [name for name, job in self.jobs(service).items() if job["status"] != "Succeeded"]
        assert not failed, f"{len(failed)} failed: {self.log(service, failed[0])}"
        assert len(stored) == len(statuses)
        numbers = []
        for name in stored:
            made = _OUTPUT.fullmatch(name)
            assert made is not None, name
            lines = self.objects.get_object(Bucket=service.bucket, Key=f"out/{name}")["Body"].read().decode().split()
            begin, end = lines[:2], lines[-2:]
            assert (begin, end) == (["begin", made["run"]], ["end", made["run"]])
            numbers.append(made["number"])
        assert len(numbers) == len(set(numbers)), "an input was worked on twice"
        assert sure <= set(numbers) <= sure | perhaps

    # What of it can be seen from outside.

    @property
    def launcher_pid(self) -> int:
        return next(pid for pid in children(self.manager.pid) if b"launcher.main" in command_of(pid))

    @property
    def weed_pid(self) -> int:
        guards = [pid for pid in children(self.manager.pid) if b"guard.py" in command_of(pid)]
        return next(pid for guard in guards for pid in children(guard))

    def job_processes(self) -> list[int]:
        """Living processes of this manager's jobs, found by their users."""
        first = int(self.manager.settings["sandbox.uid_base"])
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                if first <= entry.stat().st_uid < first + UIDS and state_of(int(entry.name)) != "Z":
                    found.append(int(entry.name))
        return found

    def job_groups(self) -> list[Path]:
        """The control groups of this manager's jobs, without the one that waits for the next job."""
        mark = hashlib.sha256(str(self.manager.data).encode()).hexdigest()[:8]
        # not Path.glob: it fails when a folder goes away under it, as control groups do
        groups = [name for depth in ("", "*/") for name in glob.iglob(f"{_CGROUPS}/{depth}*{mark}*/job-*")]
        return [group for group in map(Path, groups) if not _is_spare(group)]

    def await_no_trace(self, seconds: float = 15.0) -> None:
        eventually(lambda: not self.job_processes(), seconds, "the end of all processes of jobs")
        eventually(lambda: not self.job_groups(), seconds, "the end of all control groups of jobs")


def definition(name: str, script: str = "true", **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "image": "debian",
        "cpu": "0.2",
        "memory": "64Mi",
        "script": script,
        "input": [{"storage_provider": "minio.default", "path": f"{name}/in"}],
        "output": [{"storage_provider": "minio.default", "path": f"{name}/out"}],
        **fields,
    }


def _is_spare(group: Path) -> bool:
    """Nobody's job yet: the launcher keeps a process of its own in there."""
    try:
        members = (group / "cgroup.procs").read_text().split()
        return bool(members) and {Path(f"/proc/{pid}").stat().st_uid for pid in members} == {os.geteuid()}
    except OSError:
        return True  # gone while we looked


@contextlib.contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """Processes that hang for a while: they take connections and answer nothing."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if int(_status(int(entry.name))[1]) == pid:
                    found.append(int(entry.name))
    return found


def command_of(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def state_of(pid: int) -> str:
    return _status(pid)[0]


def _status(pid: int) -> list[str]:
    """From the process's state on; what stands before is its name, which may hold anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
