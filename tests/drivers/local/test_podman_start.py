"""Is nothing left of a container whose making was called off? With a program in place of podman that takes its time."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from hansa.drivers.local.container import PodmanCommand
from hansa.drivers.local.launch import Launch
from hansa.drivers.local.podman import PodmanRuntime

PODMAN = """#!/bin/sh
case $1 in
    create) touch made; exec sleep 60 ;;
    rm) rm made ;;
esac
"""


async def test_one_that_was_called_off_while_it_was_made_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "podman"
    program.parent.mkdir()
    program.write_text(PODMAN)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    here = tmp_path / "run"
    unused: Any = None
    runtime = PodmanRuntime(
        PodmanCommand(here, lambda variables: ""), "test", os.getuid(), 60, movers=unused, way_out=unused
    )
    work = tmp_path / "work"
    work.mkdir()
    launch = Launch("job", ("true",), {}, work, cpu=100, memory=2**20, group=os.getgid())
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
