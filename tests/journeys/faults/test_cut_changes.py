"""A create or delete that dies in the middle is never seen half-done, can be repeated, and harms nobody else."""

import contextlib
import os
import random
import signal
import sqlite3
import threading
import time

import botocore.exceptions
import httpx
import pytest

from journeys.faults.conftest import StartScene
from journeys.faults.scene import Scene, Service, definition, stopped
from journeys.waiting import eventually

KILLS, WORKERS = 3, 7  # each kill cuts as many changes as there are workers


class Keeper:
    """A service with data that nobody's trouble may touch."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.service = scene, scene.service("keeper", "true")
        scene.objects.put_object(Bucket=self.service.bucket, Key="out/treasure", Body=b"gold")

    def check(self) -> None:
        assert self.scene.known(self.service.name).token == self.service.token
        # a store that has just come back may say "try again" to the first who asks
        assert eventually(self._treasure, what="the treasure") == b"gold"

    def _treasure(self) -> bytes:
        try:
            kept = self.scene.objects.get_object(Bucket=self.service.bucket, Key="out/treasure")
        except botocore.exceptions.ClientError as error:
            if error.response["Error"]["Code"] == "InternalError":
                return b""
            raise
        return bytes(kept["Body"].read())


def buckets(scene: Scene) -> set[str]:
    return {bucket["Name"] for bucket in scene.objects.list_buckets()["Buckets"]}


def services(scene: Scene) -> set[str]:
    return {service["name"] for service in scene.admin.get("/system/services").json()}


def churn(scene: Scene, names: list[str], over: threading.Event) -> None:
    """Creates and deletes until nobody answers."""
    with contextlib.suppress(httpx.TransportError), own_client(scene) as client:
        while not over.is_set():
            for name in names:
                created = client.post("/system/services", json=definition(name))
                assert created.status_code in (201, 409), created.text
            for name in names:
                deleted = client.delete(f"/system/services/{name}")
                assert deleted.status_code in (204, 404), deleted.text


def own_client(scene: Scene) -> httpx.Client:
    return httpx.Client(base_url=scene.manager.url, auth=scene.admin.auth, timeout=60, trust_env=False)


def assert_whole(scene: Scene, keeper: Keeper) -> None:
    """Buckets and services belong together, one for one."""
    keeper.check()
    expected = services(scene)
    eventually(lambda: buckets(scene) == expected, what="the buckets of exactly the services that are there")
    assert services(scene) == expected


@pytest.mark.deep
@pytest.mark.timeout(150)
def test_kills_at_random_moments(start_scene: StartScene) -> None:
    scene = start_scene()
    keeper = Keeper(scene)
    chance = random.Random(7)
    for kill in range(KILLS):
        over = threading.Event()
        shares = [[f"churn-{kill}-{worker}-{n}" for n in range(2)] for worker in range(WORKERS)]
        threads = [threading.Thread(target=churn, args=(scene, names, over)) for names in shares]
        for thread in threads:
            thread.start()
        time.sleep(chance.uniform(0.3, 1.2))  # any moment will do
        scene.manager.kill()
        over.set()
        for thread in threads:
            thread.join(30)
        scene.manager.start()
        assert_whole(scene, keeper)
    for name in {name for names in shares for name in names} - services(scene):
        assert scene.create(name).status_code == 201
    for name in services(scene) - {keeper.service.name}:
        assert scene.admin.delete(f"/system/services/{name}").status_code == 204
    assert services(scene) == {keeper.service.name}
    assert_whole(scene, keeper)


def test_a_create_that_hangs_at_the_store(start_scene: StartScene) -> None:
    """The store stops answering in the middle; then the manager dies as well."""
    scene = start_scene()
    keeper = Keeper(scene)
    weed = scene.weed_pid
    with stopped(weed):
        asking = threading.Thread(target=_try_create, args=(scene, "hanging"))
        asking.start()
        eventually(lambda: phase_of(scene, "hanging") == "creating", what="a service half-made")
        assert "hanging" not in services(scene)
        scene.manager.kill()
        os.kill(weed, signal.SIGKILL)
        asking.join(30)
    scene.manager.start()
    assert_whole(scene, keeper)
    assert scene.create("hanging").status_code == 201
    assert_whole(scene, keeper)


def test_the_store_dies_under_a_create(rough: Scene) -> None:
    """The manager lives on: the caller hears of it, and the same call works when the store is back."""
    name = f"orphan-{random.getrandbits(32):08x}"
    with stopped(rough.weed_pid):
        asking = threading.Thread(target=_try_create, args=(rough, name))
        asking.start()
        eventually(lambda: phase_of(rough, name) == "creating", what="a service half-made")
        os.kill(rough.weed_pid, signal.SIGKILL)
    asking.join(60)
    eventually(lambda: rough.admin.get("/ready").status_code == 200, what="the store is back")
    answers = eventually(lambda: rough.create(name).status_code in (201, 409), what="the create, repeated")
    assert answers
    assert name in services(rough)
    assert name in buckets(rough)
    service: Service = rough.known(name)
    rough.upload(service, "1")
    assert rough.await_end(service, 1) == ["Succeeded"]
    assert rough.admin.delete(f"/system/services/{name}").status_code == 204
    assert name not in buckets(rough)


def _try_create(scene: Scene, name: str) -> None:
    with contextlib.suppress(httpx.TransportError), own_client(scene) as client:
        client.post("/system/services", json=definition(name))


def phase_of(scene: Scene, name: str) -> str:
    """What the manager has written down; its API shows nothing that is half-done."""
    with contextlib.closing(sqlite3.connect(scene.manager.data / "hansa.db", timeout=10)) as database:
        row = database.execute("select phase from services where name = ?", [name]).fetchone()
    return str(row[0]) if row else ""
