"""The sandbox at every level this machine can offer, each level forced by a ceiling on what may be used."""

import itertools
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from hansa.drivers.local.launcher import processes
from hansa.drivers.local.sandbox import Bind, Ceiling, Exit, Launch, Process, Sandbox, Watched

ORDINARY_USER = 3_999_999
CEILINGS = {
    "full": Ceiling(),
    "namespaces": Ceiling(cgroups=False),
    "namespaces-user": Ceiling(cgroups=False, user=ORDINARY_USER),
    "landlock": Ceiling(level="landlock"),
    "landlock-uid": Ceiling(level="landlock", cgroups=False),
    "landlock-user": Ceiling(level="landlock", cgroups=False, user=ORDINARY_USER),
    "process": Ceiling(level="process"),
}
# sessions may run side by side on one machine: each takes other uids, and the launcher's lock sees to the rest
_uid_bases = itertools.count(1_000_000 + os.getpid() % 2000 * 25_600, 256)


@dataclass
class Bench:
    """One open sandbox and a directory to work in."""

    name: str
    sandbox: Sandbox
    home: Path
    run_dir: Path
    instance: str
    uid_base: int
    ceiling: Ceiling

    def __post_init__(self) -> None:
        self._numbers = itertools.count()

    def directory(self, name: str) -> Path:
        """A new directory of ours; at the levels without root the job is this user, so it gets it."""
        made = self.home / f"{self.uid_base}-{name}"
        made.mkdir()
        self.give(made)
        return made

    def give(self, path: Path) -> None:
        if self.ceiling.user is not None:
            os.chown(path, self.ceiling.user, self.ceiling.user)

    async def start(
        self,
        *argv: str,
        env: Mapping[str, str] | None = None,
        workdir: Path | None = None,
        binds: tuple[Bind, ...] = (),
        cpu: int = 1000,
        memory: int = 256 << 20,
        seconds: float = 20,
        pids: int = 64,
        network: str = "none",
        group: int | None = None,
        hold: bool = False,
        largest_file: int = 0,
        watched: tuple[Watched, ...] = (),
    ) -> Process:
        number = next(self._numbers)
        return await self.sandbox.start(
            Launch(
                id=f"job-{number}",
                argv=argv,
                env=env or {},
                workdir=workdir or self.directory(f"work-{number}"),
                cpu=cpu,
                memory=memory,
                seconds=seconds,
                pids=pids,
                network=network,  # type: ignore[arg-type]
                binds=binds,
                group=group,
                hold=hold,
                largest_file=largest_file,
                watched=watched,
            )
        )

    async def run(self, *argv: str, **wishes: object) -> tuple[str, Exit]:
        """Output and end."""
        process = await self.start(*argv, **wishes)  # type: ignore[arg-type]
        return await heard(process), await process.wait()

    async def shell(self, script: str, **wishes: object) -> tuple[str, Exit]:
        return await self.run("sh", "-c", script, **wishes)

    async def python(self, script: str, **wishes: object) -> tuple[str, Exit]:
        return await self.run("/usr/bin/python3", "-c", script, **wishes)


async def heard(process: Process) -> str:
    return b"".join([chunk async for chunk in process.output()]).decode()


def alive(marker: str) -> list[int]:
    """Processes with this word on their command line."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and marker.encode() in Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0"):
                found.append(int(name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def cgroups_of(instance: str) -> list[str]:
    return [str(path) for path in Path("/sys/fs/cgroup").glob(f"*/hansa-{instance}-*")]


def new_uid_base() -> int:
    return next(_uid_bases)


@pytest.fixture(scope="package")
def home() -> Iterator[Path]:
    """A directory that any uid may walk through, as the levels without mount namespaces need it.

    Not `tmp_path`, which lies below a directory that only its owner may enter.
    """
    with tempfile.TemporaryDirectory(prefix="hansa-sandbox-") as directory:
        os.chmod(directory, 0o755)
        yield Path(directory)


@asynccontextmanager
async def opened(name: str, home: Path) -> AsyncIterator[Bench]:
    """A launcher at that level; when it is closed, nothing of it may be left."""
    ceiling = CEILINGS[name]
    if ceiling.user is not None and os.geteuid() != 0:
        pytest.skip("only root can become another user")
    base = new_uid_base()
    run_dir = home / f"run-{base}"
    run_dir.mkdir()
    if ceiling.user is not None:
        os.chown(run_dir, ceiling.user, ceiling.user)
    instance = f"test-{os.getpid()}-{base}"
    sandbox = await Sandbox.open(instance=instance, uid_base=base, run_dir=run_dir, ceiling=ceiling)
    bench = Bench(name, sandbox, home, run_dir, instance, base, ceiling)
    expected = name.partition("-")[0]
    try:
        if sandbox.level.name != expected:
            pytest.skip(f"this machine offers {sandbox.level.name} where {expected} was wanted")
        yield bench
    finally:
        await bench.sandbox.close()
    assert cgroups_of(instance) == []
    assert ceiling.user is not None or not processes.of_uids(range(base, base + 256))


@pytest_asyncio.fixture(scope="package", loop_scope="package", params=list(CEILINGS))
async def bench(request: pytest.FixtureRequest, home: Path) -> AsyncIterator[Bench]:
    """Every level in turn; all tests share its launcher."""
    async with opened(request.param, home) as made:
        yield made


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def full(home: Path) -> AsyncIterator[Bench]:
    async with opened("full", home) as made:
        yield made
