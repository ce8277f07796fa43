"""Is nothing left of a container whose making was called off, and what is said of one that podman does not speak of?
With a program in place of podman that takes its time."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from hansa.drivers.local.container import Container, PodmanCommand
from hansa.drivers.local.launch import Launch, PortUnreachable
from hansa.drivers.local.podman import PodmanRuntime

PODMAN = """#!/bin/sh
case $1 in
    create) touch made; exec sleep 60 ;;
    inspect) exec sleep 60 ;;
    rm) rm made ;;
esac
"""


@pytest.fixture
def podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PodmanCommand:
    program = tmp_path / "bin" / "podman"
    program.parent.mkdir()
    program.write_text(PODMAN)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return PodmanCommand(tmp_path / "run", lambda variables: "")


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    work = tmp_path / "work"
    work.mkdir()
    return Launch("job", ("true",), {}, work, cpu=100, memory=2**20, group=os.getgid())


async def test_one_that_was_called_off_while_it_was_made_is_removed(
    tmp_path: Path, podman: PodmanCommand, launch: Launch
) -> None:
    here = tmp_path / "run"
    unused: Any = None
    runtime = PodmanRuntime(podman, "test", os.getuid(), 60, movers=unused, way_out=unused)
    starting = asyncio.create_task(runtime.start(launch, "localhost/tool:1"))
    try:
        async with asyncio.timeout(20):
            while not (here / "made").exists():
                await asyncio.sleep(0.01)
    finally:
        starting.cancel()
        await asyncio.wait([starting])
    assert starting.cancelled()
    assert [path.name for path in here.iterdir()] == ["containers.conf"]


async def test_silence_is_said_in_words(podman: PodmanCommand, launch: Launch) -> None:
    with pytest.raises(PortUnreachable, match="no answer"):
        await Container(podman, "one", launch).dial(80, timeout=0.1)
