"""Volumes are folders within a user's quota, which go away completely or not at all."""

import asyncio
from pathlib import Path

import pytest

from hansa import resources
from hansa.drivers.runs.removal import remove
from hansa.identity import Caller, Vault
from hansa.kernel.errors import Invalid, NotFound
from hansa.kernel.names import BadName
from hansa.kernel.quota import QuotaSettings
from hansa.storage import (
    Attachment,
    BucketRegister,
    Folders,
    Grants,
    NoDisk,
    People,
    VolumeAttached,
    VolumeExists,
    VolumeMissing,
    VolumeQuota,
    Volumes,
)
from hansa.store import Database
from hansa.store.buckets import BucketStore
from hansa.store.people import PeopleStore
from hansa.store.quotas import QuotaStore
from hansa.store.volumes import VolumeStore
from storage.furnished import PREFIX, HandClock

SETTINGS = QuotaSettings(volumes=3, disk="1Gi", min_disk_per_volume="100Mi", max_disk_per_volume="600Mi")
Attached = dict[tuple[str, str], list[Attachment]]


@pytest.fixture
def attached() -> Attached:
    return {}


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "volumes", remove)


@pytest.fixture
def free_disk() -> list[int]:
    return [resources.NO_LIMIT]


@pytest.fixture
def volumes(
    database: Database, folders: Folders, clock: HandClock, attached: Attached, free_disk: list[int]
) -> Volumes:
    grants = Grants(None, BucketRegister(BucketStore(database)))
    people = People(PeopleStore(database), grants, Vault([Vault.new_key()]), PREFIX, clock)
    return Volumes(
        VolumeStore(database),
        folders,
        resources.Quotas(QuotaStore(database), SETTINGS),
        people,
        lambda namespace, name: attached.get((namespace, name), []),
        clock,
        lambda: free_disk[0],
    )


async def test_a_volume_is_a_folder_that_outlives_a_restart(volumes: Volumes, alice: Caller, bob: Caller) -> None:
    view = await volumes.create(alice, "models", "200Mi")
    place = volumes.place_of(view.volume.namespace, "models")
    path = Path(place.source)
    (path / "weights").write_bytes(b"x")
    assert path.stat().st_gid == place.gid
    assert path.stat().st_mode & 0o7777 == 0o2770
    await volumes.load()
    assert (path / "weights").read_bytes() == b"x"
    assert [one.volume.name for one in await volumes.listing(alice)] == ["models"]
    assert await volumes.listing(bob) == []
    with pytest.raises(NotFound):
        await volumes.get(bob, "models")
    with pytest.raises(VolumeExists):
        await volumes.create(alice, "models", "200Mi")


async def test_a_removed_volume_takes_its_contents_along(volumes: Volumes, folders: Folders, alice: Caller) -> None:
    view = await volumes.create(alice, "models", "200Mi")
    path = folders.path_of(view.volume.namespace, "models")
    (path / "weights").write_bytes(b"x")
    await volumes.delete(alice, "models")
    assert not path.exists()
    with pytest.raises(NotFound):
        await volumes.delete(alice, "models")
    # a crash after the record was removed leaves the folder; the next volume of that name starts empty
    path.mkdir()
    (path / "weights").write_bytes(b"x")
    await volumes.create(alice, "models", "200Mi")
    assert list(path.iterdir()) == []


@pytest.mark.parametrize("size", ["99Mi", "601Mi", "0"])
async def test_the_size_keeps_to_the_quota(volumes: Volumes, alice: Caller, size: str) -> None:
    with pytest.raises(VolumeQuota, match="quota"):
        await volumes.create(alice, "models", size)
    assert await volumes.listing(alice) == []


async def test_count_and_disk_keep_to_the_quota_also_at_once(volumes: Volumes, alice: Caller) -> None:
    made = await asyncio.gather(
        *(volumes.create(alice, f"v{number}", "100Mi") for number in range(5)), return_exceptions=True
    )
    assert [type(outcome) for outcome in made].count(VolumeQuota) == 2
    assert volumes.used(alice.uid) == resources.Used(3, 3 * 100 * 2**20)
    await volumes.delete(alice, "v0")
    await volumes.delete(alice, "v1")
    await volumes.create(alice, "big", "600Mi")
    with pytest.raises(VolumeQuota, match="disk quota"):
        await volumes.create(alice, "other", "400Mi")
    await volumes.create(Caller.admin(), "huge", "10Ti")


@pytest.mark.parametrize("name", ["", "..", "a/b", "A", "a\0", "x" * 64])
async def test_odd_names_are_refused(volumes: Volumes, alice: Caller, name: str) -> None:
    with pytest.raises(BadName):
        await volumes.create(alice, name, "200Mi")
    with pytest.raises(BadName):
        await volumes.get(alice, name)


async def test_odd_sizes_are_refused(volumes: Volumes, alice: Caller) -> None:
    with pytest.raises(Invalid):
        await volumes.create(alice, "models", "big")


async def test_what_a_service_uses_stays(volumes: Volumes, alice: Caller, attached: Attached) -> None:
    view = await volumes.create(alice, "models", "200Mi")
    namespace = view.volume.namespace
    attached[(namespace, "models")] = [Attachment("gray", "/data")]
    with pytest.raises(VolumeAttached, match="gray"):
        await volumes.delete(alice, "models")
    assert (await volumes.get(alice, "models")).attachments == (Attachment("gray", "/data"),)
    assert not await volumes.for_service(alice, namespace, "models", "", "gray", "")
    with pytest.raises(VolumeMissing):
        await volumes.for_service(alice, namespace, "missing", "", "gray", "")


@pytest.mark.parametrize(("policy", "stays"), [("", False), ("delete", False), ("retain", True)])
async def test_a_services_own_volume_goes_with_it_unless_retained(
    volumes: Volumes, alice: Caller, attached: Attached, policy: str, stays: bool
) -> None:
    namespace = (await volumes.create(alice, "mine", "100Mi")).volume.namespace
    assert await volumes.for_service(alice, namespace, "scratch", "200Mi", "gray", policy)
    attached[(namespace, "scratch")] = [Attachment("gray", "/s")]
    await volumes.release(namespace, "scratch", "other")
    await volumes.release(namespace, "mine", "gray")
    await volumes.release(namespace, "scratch", "gray")
    left = [one.volume.name for one in await volumes.listing(alice)]
    assert left == (["mine", "scratch"] if stays else ["mine"])


async def test_a_failed_creation_takes_its_volume_back(volumes: Volumes, alice: Caller) -> None:
    namespace = (await volumes.create(alice, "mine", "100Mi")).volume.namespace
    await volumes.for_service(alice, namespace, "scratch", "200Mi", "gray", "retain")
    await volumes.drop(namespace, "scratch")
    await volumes.drop(namespace, "mine")  # not made for a service
    assert [one.volume.name for one in await volumes.listing(alice)] == ["mine"]


async def test_what_the_machine_has_no_room_for_is_refused(volumes: Volumes, free_disk: list[int]) -> None:
    """The admin has no quota, but no more disk than there is either."""
    admin, free_disk[0] = Caller.admin(), 700 * 2**20
    with pytest.raises(NoDisk, match="700Mi of disk are free"):
        await volumes.create(admin, "huge", "701Mi")
    await volumes.create(admin, "fits", "700Mi")
    assert volumes.promised == 700 * 2**20
    assert volumes.place_of((await volumes.listing(admin))[0].volume.namespace, "fits").size == 700 * 2**20
