"""An accepted job survives kill -9 of its manager: it runs to its end, and what it stored was stored once."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import httpx
import pytest

from journeys.faults.conftest import StartScene
from journeys.faults.scene import Scene, Service
from journeys.waiting import eventually

AT_ONCE = 10
CLIENTS = 8


def named(number: int) -> str:
    """Two in three come with a name of their own: sent again, they are the same job."""
    return f"proof-{number:04}" if number % 3 else ""


class Crowd:
    """Clients that submit at the same time and note what was answered."""

    def __init__(self, scene: Scene, service: Service, half: int) -> None:
        self._scene, self._service, self._half = scene, service, half
        self._some_answered = threading.Event()
        self.answered: set[int] = set()

    def send(self, number: int) -> None:
        try:
            self._scene.submit(self._service, str(number), named(number))
        except (httpx.TransportError, AssertionError):
            return  # not answered: it may have been accepted all the same
        self.answered.add(number)
        if len(self.answered) >= self._half:
            self._some_answered.set()

    def await_half(self) -> None:
        assert self._some_answered.wait(60), f"{len(self.answered)} answers"


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("kind", "submitted", "uploaded"),
    [("sqlite", 140, 60), pytest.param("postgresql", 40, 20, marks=pytest.mark.deep)],
)
def test_no_job_is_lost_and_none_shows_twice(
    start_scene: StartScene, request: pytest.FixtureRequest, kind: str, submitted: int, uploaded: int
) -> None:
    database = request.getfixturevalue("postgres_database").url if kind == "postgresql" else ""
    scene = start_scene({"jobs.cpu": f"{AT_ONCE * 200}m", "jobs.attempts": 10}, database=database)
    service = scene.service("proof")
    crowd = Crowd(scene, service, submitted // 2)
    uploads = [str(1000 + number) for number in range(uploaded)]
    early, late = uploads[: uploaded // 2], uploads[uploaded // 2 :]

    with ThreadPoolExecutor(CLIENTS) as pool:
        sending: list[Future[None]] = [pool.submit(crowd.send, number) for number in range(submitted)]
        for name in early:
            scene.upload(service, name)
        crowd.await_half()
        scene.manager.kill()  # in the middle of accepting
    assert all(one.done() for one in sending)
    scene.await_no_trace()
    scene.manager.start()

    unheard = {number for number in range(submitted) if number not in crowd.answered}
    for number in unheard:
        if named(number):
            crowd.send(number)
    for name in late:
        scene.upload(service, name)
    for share in (3, 2):  # among waiting, running and storing ones
        enough = (submitted + uploaded) // share
        eventually(partial(scene.has_outputs, service, enough), what=f"{enough} results")
        scene.manager.kill()
        scene.await_no_trace()
        scene.manager.start()

    sure = {str(number) for number in crowd.answered} | set(uploads)
    perhaps = frozenset(str(number) for number in unheard)
    scene.await_end(service, len(sure), seconds=90)
    scene.assert_proofs(service, sure, perhaps)
    assert scene.admin.get("/v1/node").json()["promised"] == {"cpu": 0, "memory": 0}
    eventually(lambda: not list((scene.manager.data / "work").glob("proof*")), what="the end of all work folders")
