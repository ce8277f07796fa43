"""A tenant who writes to the embedded store for as long as it takes leaves the manager the room that it needs."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from journeys.conftest import signing_in
from journeys.test_full_buckets import own_client, refused, words
from journeys.waiting import eventually
from real.identity_provider import IdentityProvider
from real.manager import ROOMY, Manager, free_port, leased_uids, trusting

MIB = 2**20
DISK, RESERVE = 640 * MIB, 128 * MIB
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")


@pytest.fixture
def cramped(sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    """A manager whose data folder is a small disk of its own."""
    folder = Path(tempfile.mkdtemp(prefix="hansa-manager-"))
    folder.chmod(0o711)
    data = folder / "data"
    data.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=0700", "tmpfs", data], check=True)
    try:
        with leased_uids() as uids:
            limits = {"jobs.disk_reserve": str(RESERVE), "jobs.disk_per_run": "16Mi", "sandbox.uid_base": uids}
            manager = Manager(folder, free_port(), {**ROOMY, **trusting(sign_in_provider), **limits})
            try:
                manager.start()
                yield manager
                manager.stop()
            finally:
                manager.close()
    finally:
        subprocess.run(["umount", "-l", data], check=True)
        shutil.rmtree(folder, ignore_errors=True)


def free(manager: Manager) -> int:
    facts = os.statvfs(manager.data)
    return facts.f_bavail * facts.f_frsize


def test_uploads_stop_at_the_reserve_and_go_on_when_there_is_room(
    cramped: Manager, sign_in_provider: IdentityProvider
) -> None:
    alice = signing_in(cramped, sign_in_provider)("alice")
    assert alice.post("/system/buckets", json={"bucket_name": "hoard"}).status_code == 201
    hers = own_client(alice)
    others = cramped.data / "of-others"
    with others.open("wb") as file:  # most of it is taken already, so that the test is short
        os.posix_fallocate(file.fileno(), 0, free(cramped) - RESERVE - 32 * MIB)
    written = 0
    while not refused(hers, "hoard", f"part-{written}", 4 * MIB):  # as fast as one can
        written += 1
        assert written < 200, "nobody stops her"
    assert free(cramped) > RESERVE // 4
    assert "nearly full" in eventually(lambda: words(alice, "hoard"))
    link = alice.post("/system/buckets/hoard/presign", json={"object_key": "k", "operation": "upload"})
    assert (link.status_code, "nearly full" in link.text) == (503, True)
    assert len(hers.get_object(Bucket="hoard", Key="part-0")["Body"].read()) == 4 * MIB  # it can be read
    assert alice.post("/system/buckets", json={"bucket_name": "another"}).status_code == 201  # the manager works
    others.unlink()
    eventually(lambda: not refused(hers, "hoard"))
    assert words(alice, "hoard") == ""
