"""Are claims places of volumes as folders are? The contract, then what only a Kubernetes can say of one."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from lightkube.resources.core_v1 import PersistentVolume, PersistentVolumeClaim, ResourceQuota

from contracts.volume_places import MIB, Identity, VolumePlacesContract, until_phase, volume
from hansa import resources
from hansa.drivers.kubernetes.claims import Claims
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.errors import ApiRefused
from hansa.identity import Caller, Vault
from hansa.kernel.clock import SystemClock
from hansa.kernel.quota import QuotaSettings
from hansa.storage import BucketRegister, Grants, People, VolumeExists, VolumeQuota, Volumes
from hansa.store import BucketStore, Database, PeopleStore, QuotaStore, VolumeStore, make_engine, schema, sqlite_url
from real.kubernetes.access import Access
from real.kubernetes.cluster import Component, KubernetesCluster
from real.kubernetes.fixtures import fresh_namespace

QUOTA = QuotaSettings(volumes=2, disk="1Gi", min_disk_per_volume="100Mi", max_disk_per_volume="600Mi")


async def nothing(namespace: str) -> None:
    """Its namespace is there."""


@pytest.fixture
def access(kubernetes_api: KubernetesCluster) -> Access:
    return kubernetes_api.access


@pytest.fixture
async def namespace(access: Access) -> AsyncIterator[str]:
    async with fresh_namespace(access) as name:
        yield name


@pytest.fixture
async def api(access: Access) -> AsyncIterator[Connection]:
    opened = Connection.open(access.kubeconfig)
    yield opened
    await opened.close()


@pytest.fixture
def cluster() -> str:
    return f"c-{secrets.token_hex(5)}"


@pytest.fixture
def storage_class() -> str:
    return f"class-{secrets.token_hex(5)}"


@pytest.fixture
async def places(api: Connection, cluster: str, storage_class: str) -> AsyncIterator[Claims]:
    opened = Claims(api, cluster, ensure=nothing, storage_class=storage_class)
    opened.start()
    yield opened
    await opened.close()


@pytest.fixture
def identity(api: Connection, namespace: str) -> Identity:
    async def of(name: str) -> str | None:
        found = await api.get(PersistentVolumeClaim, name, namespace)
        return None if found is None else str(found.metadata.uid)

    return of


class TestClaims(VolumePlacesContract):
    pass


async def provided(api: Connection, storage_class: str) -> None:
    """A disk as an administrator would offer one; it goes with the API server of this file."""
    made = PersistentVolume.from_dict(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"disk-{secrets.token_hex(5)}"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": storage_class,
                "hostPath": {"path": "/nowhere"},
            },
        }
    )
    await api.apply(made)


async def test_a_claim_says_whose_it_is_and_how_much(
    api: Connection, places: Claims, namespace: str, cluster: str
) -> None:
    await places.make(volume(namespace, size=300 * MIB))
    found = await api.get(PersistentVolumeClaim, "models", namespace)
    assert found is not None
    assert found.metadata.labels["hansa/cluster"] == cluster
    assert found.metadata.labels["app.kubernetes.io/managed-by"] == "hansa"
    assert found.metadata.annotations["oscar.grycap/owner-user"] == "alice"
    assert found.spec.resources.requests == {"storage": "300Mi"}
    assert found.spec.accessModes == ["ReadWriteOnce"]
    assert places.place(namespace, "models").one_node


async def test_a_claim_that_cannot_be_bound_says_why_until_it_is(
    api: Connection, places: Claims, namespace: str, storage_class: str
) -> None:
    one = volume(namespace)
    await places.make(one)
    async with asyncio.timeout(30):
        while not (seen := places.standing(namespace, "models")).trouble:
            await asyncio.sleep(0.05)
    assert seen.phase == "Pending"
    assert f'"{storage_class}" not found' in seen.reason
    await provided(api, storage_class)
    bound = await until_phase(places, one, "Bound", seconds=60)
    assert (bound.reason, bound.trouble) == ("", False)


async def test_a_claim_that_somebody_deletes_is_lost_and_made_again_by_the_next_start(
    api: Connection, places: Claims, namespace: str, cluster: str, identity: Identity
) -> None:
    one = volume(namespace)
    await places.make(one)
    await api.delete(PersistentVolumeClaim, "models", namespace)
    assert "deleted in Kubernetes" in (await until_phase(places, one, "Lost")).reason
    again = Claims(api, cluster, ensure=nothing)
    again.start()
    try:
        await again.load([one])
        await until_phase(again, one, "Pending")
        async with asyncio.timeout(20):
            while await identity("models") is None:
                await asyncio.sleep(0.05)
    finally:
        await again.close()


async def test_a_claim_that_is_being_deleted_is_not_there_to_be_used(
    api: Connection, places: Claims, namespace: str, storage_class: str
) -> None:
    one = volume(namespace)
    await places.make(one)
    await provided(api, storage_class)
    await until_phase(places, one, "Bound", seconds=60)
    held = {"metadata": {"finalizers": ["hansa.test/a-pod-uses-it"]}}
    await api.merge(PersistentVolumeClaim, "models", namespace, held)
    await api.delete(PersistentVolumeClaim, "models", namespace)
    assert "being deleted" in (await until_phase(places, one, "Lost")).reason
    await api.merge(PersistentVolumeClaim, "models", namespace, {"metadata": {"finalizers": None}})
    await places.make(one)
    await until_phase(places, one, "Pending")


async def test_a_quota_of_kubernetes_is_one_of_ours(api: Connection, places: Claims, namespace: str) -> None:
    about = {"name": "few", "namespace": namespace}
    hard = {"persistentvolumeclaims": "0"}
    await api.create(ResourceQuota.from_dict({"metadata": about, "spec": {"hard": hard}}))
    async with asyncio.timeout(30):
        while (found := await api.get(ResourceQuota, "few", namespace)) is None or not found.status.hard:
            await asyncio.sleep(0.1)
    with pytest.raises(VolumeQuota, match="quota"):
        await places.make(volume(namespace))


async def test_a_claim_of_others_is_neither_taken_nor_removed(
    api: Connection, places: Claims, namespace: str, identity: Identity
) -> None:
    other = Claims(api, "another-cluster", ensure=nothing)
    await other.make(volume(namespace))
    before = await identity("models")
    with pytest.raises(VolumeExists, match="not ours"):
        await places.make(volume(namespace))
    await places.remove(namespace, "models")
    assert await identity("models") == before


async def test_users_who_share_a_namespace_do_not_share_a_claim(api: Connection, cluster: str, namespace: str) -> None:
    shared = Claims(api, cluster, ensure=nothing, placed=lambda _: namespace, many_nodes=True)
    names = {shared.place(user, "models").source for user in ("oscar-svc-alice", "oscar-svc-bob", namespace)}
    assert len(names) == 3
    assert not shared.place(namespace, "models").one_node
    for user in ("oscar-svc-alice", "oscar-svc-bob"):
        await shared.make(volume(user))
    found = await api.list(PersistentVolumeClaim, namespace, {})
    assert {one.metadata.name for one in found} == names - {"models"}
    assert {tuple(one.spec.accessModes) for one in found} == {("ReadWriteMany",)}


async def test_a_server_that_is_away_is_asked_to_remove_again(
    kubernetes_api: KubernetesCluster, places: Claims, namespace: str, identity: Identity
) -> None:
    await places.make(volume(namespace))
    kubernetes_api.kill(Component.API)
    try:
        await places.remove(namespace, "models")
    finally:
        kubernetes_api.restore()
    async with asyncio.timeout(60):
        while await identity("models") is not None:
            await asyncio.sleep(0.1)


@pytest.fixture
async def volumes(places: Claims, namespace: str, tmp_path: Path) -> AsyncIterator[Volumes]:
    engine = make_engine(sqlite_url(tmp_path))
    schema.upgrade(engine)
    database = Database(engine)
    database.start()
    grants = Grants(None, BucketRegister(BucketStore(database)))
    clock = SystemClock()
    people = People(PeopleStore(database), grants, Vault([Vault.new_key()]), "oscar-svc", clock)
    quotas = resources.Quotas(QuotaStore(database), QUOTA)
    yield Volumes(VolumeStore(database), places, quotas, people, lambda *_: [], clock)
    await database.close()


class TestWithRowsAndQuotas:
    @pytest.fixture
    async def places(self, api: Connection, cluster: str, namespace: str) -> AsyncIterator[Claims]:
        opened = Claims(api, cluster, ensure=nothing, placed=lambda _: namespace)
        opened.start()
        yield opened
        await opened.close()

    async def test_a_quota_of_number_and_size_holds_and_leaves_no_claim(
        self, api: Connection, volumes: Volumes, namespace: str
    ) -> None:
        alice = Caller(kind="user", uid="alice", name="Alice", subject="alice")
        for refused in ("50Mi", "700Mi"):
            with pytest.raises(VolumeQuota):
                await volumes.create(alice, "odd", refused)
        await volumes.create(alice, "one", "600Mi")
        with pytest.raises(VolumeQuota, match="disk quota"):
            await volumes.create(alice, "two", "600Mi")
        await volumes.create(alice, "two", "100Mi")
        with pytest.raises(VolumeQuota, match="2 volumes"):
            await volumes.create(alice, "three", "100Mi")
        assert len(await api.list(PersistentVolumeClaim, namespace, {})) == 2
        await volumes.delete(alice, "one")
        async with asyncio.timeout(20):
            while len(await api.list(PersistentVolumeClaim, namespace, {})) != 1:
                await asyncio.sleep(0.05)


class TestWithoutRights:
    @pytest.fixture
    async def places(self, api: Connection, cluster: str) -> AsyncIterator[Claims]:
        async def refused(namespace: str) -> None:
            raise ApiRefused("the account may make no namespaces")

        opened = Claims(api, cluster, ensure=refused)
        opened.start()
        yield opened
        await opened.close()

    async def test_what_is_refused_leaves_no_row(self, volumes: Volumes) -> None:
        alice = Caller(kind="user", uid="alice", name="Alice", subject="alice")
        with pytest.raises(ApiRefused):
            await volumes.create(alice, "one", "200Mi")
        assert await volumes.listing(alice) == []

    async def test_what_cannot_be_made_at_start_is_told(self, places: Claims, namespace: str) -> None:
        one = volume(namespace)
        await places.load([one])
        async with asyncio.timeout(20):
            while not places.standing(namespace, "models").trouble:
                await asyncio.sleep(0.05)
        assert "no namespaces" in places.standing(namespace, "models").reason
