"""A database or an object store that goes away: clear words meanwhile, nothing lost, and recovery by itself."""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from journeys.faults.conftest import StartScene
from journeys.faults.scene import PROOF, Scene, Service, children, stopped
from journeys.waiting import eventually
from real import parts
from real.postgres import USER, Server, initialise, running_server, server_account


@pytest.fixture
def server_folder() -> Iterator[Path]:
    """A server of this test's own, to be stopped and started."""
    folder = Path(tempfile.mkdtemp(prefix="hansa-pg-", dir="/tmp"))
    account = server_account()
    if account is not None:
        os.chown(folder, account.pw_uid, account.pw_gid)
    initialise(parts.require("postgres").resolve().parent, folder, account)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def serving(folder: Path) -> contextlib.AbstractContextManager[Server]:
    return running_server(parts.require("postgres").resolve().parent, folder, server_account())


def try_submit(scene: Scene, service: Service, body: str) -> httpx.Response:
    return scene.manager.bearer(service.token).post(f"/job/{service.name}", content=body)


def assert_says_away(scene: Scene, service: Service) -> None:
    """Within a bounded time, and whatever needs no database goes on."""
    for answer in (scene.admin.get(f"/system/logs/{service.name}"), try_submit(scene, service, "100")):
        assert answer.status_code == 503
        assert "database" in answer.text
        assert answer.headers["retry-after"]
    ready = scene.admin.get("/ready")
    assert ready.status_code == 503
    assert ["database" in one for one in ready.json()["missing"]] == [True]
    assert scene.admin.get(f"/system/services/{service.name}").status_code == 200
    assert scene.admin.get("/health").status_code == 200


@pytest.mark.deep
@pytest.mark.timeout(150)
def test_postgresql_hangs_then_goes_then_is_back(start_scene: StartScene, server_folder: Path) -> None:
    with serving(server_folder) as server:
        scene = start_scene(database=f"postgresql://{USER}@/postgres?host={server_folder}")
        service = scene.service("ledger", PROOF.format(seconds="1"))
        for number in range(5):
            scene.submit(service, str(number))
        eventually(scene.job_processes, what="running jobs")
        with stopped(server.process.pid, *children(server.process.pid)):
            assert_says_away(scene, service)
        scene.await_end(service, 5)
        for number in range(5, 10):
            scene.submit(service, str(number))
        eventually(scene.job_processes, what="running jobs")
    assert_says_away(scene, service)
    eventually(lambda: not scene.job_processes(), what="the end of the jobs while nobody can write it down")
    with serving(server_folder):
        eventually(lambda: scene.admin.get("/ready").status_code == 200, what="the database is back")
        scene.submit(service, "10")
        scene.await_end(service, 11)
        # a submission that was answered 503 may have been written down: then it ran, once
        sure = {str(number) for number in range(11)}
        scene.assert_proofs(service, sure, frozenset({"100"}))
        scene.manager.stop()


def test_the_object_store_hangs(rough: Scene) -> None:
    service = rough.service("shelf", PROOF.format(seconds="0.1"))
    with stopped(rough.weed_pid):
        for number in range(3):
            rough.submit(service, str(number))  # accepting needs no store
        began = time.monotonic()
        ready = rough.admin.get("/ready")
        assert time.monotonic() - began < 10
        assert ready.status_code == 503
        assert ["object store" in one for one in ready.json()["missing"]] == [True]
        assert rough.admin.get(f"/system/services/{service.name}").status_code == 200
        assert rough.admin.get("/system/services").status_code == 200
        assert "Succeeded" not in rough.statuses(service)
    assert rough.await_end(service, 3, seconds=90) == ["Succeeded"] * 3
    rough.assert_proofs(service, {"0", "1", "2"})
    eventually(lambda: rough.admin.get("/ready").status_code == 200, what="all parts answer")
