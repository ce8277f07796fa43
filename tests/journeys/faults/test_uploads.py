"""Each version of an uploaded object becomes one job: whoever dies, whoever tells of it, however often."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from journeys.faults.conftest import StartScene
from journeys.faults.scene import PROOF, Scene, Service, stopped
from journeys.waiting import eventually

QUICK = PROOF.format(seconds="0")
BURST = 200


def await_quiet(scene: Scene, service: Service, expected: int) -> None:
    """All expected jobs have ended, and no other came up to the end of a later upload's job."""
    scene.await_end(service, expected, seconds=90)
    scene.upload(service, "999999")
    scene.await_end(service, expected + 1)
    assert len(scene.jobs(service)) == expected + 1


@pytest.mark.deep
@pytest.mark.timeout(180)
def test_a_burst_is_found_after_the_store_was_killed(rough: Scene) -> None:
    """What weed had told nobody yet is lost with its memory; a listing finds it."""
    service = rough.service("burst", QUICK)
    names = [str(number) for number in range(BURST)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: rough.upload(service, name), names))
    os.kill(rough.weed_pid, signal.SIGKILL)
    eventually(lambda: rough.admin.get("/ready").status_code == 200, what="the store is back")
    await_quiet(rough, service, BURST)
    rough.assert_proofs(service, {*names, "999999"})


def test_uploads_while_the_manager_is_away(start_scene: StartScene) -> None:
    scene = start_scene()
    service = scene.service("away", QUICK)
    scene.upload(service, "0")  # the store is known before nobody can be asked for it
    names = [str(number) for number in range(20)]
    with stopped(scene.manager.pid):
        for name in names[1:]:
            scene.upload(service, name)
        scene.manager.kill()
    scene.manager.start()
    await_quiet(scene, service, len(names))
    scene.assert_proofs(service, {*names, "999999"})


def test_what_counts_as_new(rough: Scene) -> None:
    service = rough.service("news", QUICK)
    rough.upload(service, "one")
    rough.await_end(service, 1)

    rough.upload(service, "one", "1")
    rough.await_end(service, 2)

    tags = {"TagSet": [{"Key": "colour", "Value": "red"}]}
    rough.objects.put_object_tagging(Bucket=service.bucket, Key="in/one", Tagging=tags)  # type: ignore[arg-type]

    # the same again is news too, as in OSCAR; the store tells versions apart by the second
    written = rough.objects.head_object(Bucket=service.bucket, Key="in/one")["LastModified"]
    while int(datetime.now(UTC).timestamp()) <= int(written.timestamp()):
        time.sleep(0.05)
    rough.upload(service, "one", "1")
    rough.await_end(service, 3)

    rough.objects.delete_object(Bucket=service.bucket, Key="in/one")
    await_quiet(rough, service, 3)


def test_what_was_there_before_the_service_is_no_news(rough: Scene) -> None:
    first = rough.service("older", QUICK)
    rough.upload(first, "1")
    rough.await_end(first, 1)
    folders = [{"storage_provider": "minio.default", "path": f"{first.bucket}/in"}]
    second = rough.service("younger", "true", input=folders, output=[])
    rough.upload(first, "2")
    rough.await_end(second, 1)
    await_quiet(rough, first, 2)
    rough.await_end(second, 2)
    assert len(rough.jobs(second)) == 2  # of the two objects that came after it; the first had been there
