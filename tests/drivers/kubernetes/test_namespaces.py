"""A user's namespace is marked as OSCAR marks it, and never another user's."""

import asyncio
import base64
import contextlib
import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace, ResourceQuota, Secret

from contracts.orders import order
from hansa import storage
from hansa.drivers.kubernetes import namespaces
from hansa.drivers.kubernetes.board import Board
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.engine import Engine
from hansa.drivers.kubernetes.namespaces import Namespaces, NamespaceTaken, PullSecretMissing
from hansa.drivers.kubernetes.pods import Shape
from hansa.identity import Caller, Vault, owner_hash, user_namespace
from hansa.kernel.clock import SystemClock
from hansa.settings import BadSetting
from hansa.storage import People
from hansa.store import BucketStore, Database, PeopleStore, make_engine, schema, sqlite_url
from real.kubernetes.access import Access


@dataclass
class Ground:
    api: Connection
    prefix: str  # of this test's namespaces

    def namespaces(self, cluster: str = "lubeck", **more: Any) -> Namespaces:
        return Namespaces(self.api, cluster, default=self.prefix, private=f"{self.prefix}-p", **more)

    async def found(self, name: str) -> Any:
        found = await self.api.get(Namespace, name)
        assert found is not None
        return found.metadata


@pytest.fixture
async def ground(kubernetes: Access) -> AsyncIterator[Ground]:
    api = Connection.open(kubernetes.kubeconfig)
    prefix = f"t{secrets.token_hex(4)}"
    try:
        yield Ground(api, prefix)
    finally:
        for one in await api.list(Namespace):
            if one.metadata.name.startswith(prefix):
                await api.delete(Namespace, one.metadata.name)
        await api.close()


async def test_it_carries_the_marks_of_oscar_and_ours(ground: Ground) -> None:
    name = user_namespace(ground.prefix, "alice@example.org")
    homes = ground.namespaces(owner_of={name: "alice@example.org"}.get)
    await homes.ensure(name)
    await homes.ensure(name)
    meta = await ground.found(name)
    assert meta.labels["app.kubernetes.io/managed-by"] == "oscar"
    assert meta.labels["oscar.grycap.upv.es/owner-hash"] == owner_hash("alice@example.org")
    assert meta.annotations["oscar.grycap.upv.es/owner"] == "alice@example.org"
    assert meta.labels["hansa/cluster"] == "lubeck"
    assert meta.labels["pod-security.kubernetes.io/enforce"] == "restricted"


async def test_the_admins_and_the_managers_belong_to_nobody(ground: Ground) -> None:
    homes = ground.namespaces()
    for name in (ground.prefix, f"{ground.prefix}-p"):
        await homes.ensure(name, "cluster_admin")
        meta = await ground.found(name)
        assert "oscar.grycap.upv.es/owner-hash" not in meta.labels
        assert meta.labels["app.kubernetes.io/managed-by"] == "hansa"


async def test_another_users_is_never_used(ground: Ground) -> None:
    name = f"{ground.prefix}-u"
    await ground.namespaces().ensure(name, "alice")
    again = ground.namespaces()
    assert not await again.claim(name, "bob")
    assert await again.claim(name, "alice")
    assert not await again.claim(f"{ground.prefix}-p", "bob")
    await again.ensure(name, "alice")
    with pytest.raises(NamespaceTaken, match="another user"):
        await again.ensure(name, "bob")


async def test_of_those_who_claim_one_at_once_one_gets_it(ground: Ground) -> None:
    name = f"{ground.prefix}-u"
    managers = [ground.namespaces(cluster) for cluster in ("lubeck", "visby", "riga")]
    granted = await asyncio.gather(*(homes.claim(name, "alice") for homes in managers))
    assert sorted(granted) == [False, False, True]
    winner = managers[granted.index(True)]
    assert (await ground.found(name)).labels["hansa/cluster"] == winner.cluster
    assert await winner.claim(name, "alice")


async def test_one_made_before_stays_as_it_is(ground: Ground) -> None:
    name = f"{ground.prefix}-u"
    await ground.api.create(Namespace(metadata=ObjectMeta(name=name, labels={"theirs": "x"})))
    await ground.namespaces().ensure(name, "alice")
    labels = (await ground.found(name)).labels
    assert labels["theirs"] == "x"
    assert "oscar.grycap.upv.es/owner-hash" not in labels
    assert "pod-security.kubernetes.io/enforce" not in labels


async def test_one_of_ours_learns_whose_it_is(ground: Ground) -> None:
    name, homes = f"{ground.prefix}-u", ground.namespaces()
    await homes.ensure(name)
    await homes.ensure(name, "alice")
    assert (await ground.found(name)).labels["oscar.grycap.upv.es/owner-hash"] == owner_hash("alice")


async def test_with_a_list_nothing_is_made_and_no_other_is_used(ground: Ground) -> None:
    homes = ground.namespaces(allowed=("team-a", "team-b"))
    assert [homes.placed(name) for name in ("team-b", "oscar-svc-alice-52", "")] == ["team-b", "team-a", "team-a"]
    await homes.ensure(f"{ground.prefix}-u", "alice")
    await homes.ensure(f"{ground.prefix}-p")
    assert await ground.api.get(Namespace, f"{ground.prefix}-u") is None
    assert await ground.api.get(Namespace, f"{ground.prefix}-p") is None
    assert await homes.claim("team-a", "alice")


async def test_what_nodes_pull_our_image_with_is_where_users_pods_are(ground: Ground) -> None:
    name, own, theirs = (f"{ground.prefix}-{end}" for end in "upt")

    async def ensured(namespace: str, owner: str = "") -> None:
        """As after a start."""
        await ground.namespaces(pull_secrets=("harbour",)).ensure(namespace, owner)

    async def there(namespace: str) -> tuple[str, dict[str, str]]:
        found = await ground.api.get(Secret, "harbour", namespace)
        assert found is not None
        return found.type, found.data

    with pytest.raises(PullSecretMissing, match=f"no Secret harbour in namespace {own}"):
        await ensured(name, "alice")
    await ensured(own)
    for password in ("first", "second"):
        made = pull_secret("harbour", own, password)
        await ground.api.delete(Secret, "harbour", own)
        if password == "second":
            await ensured(name, "alice")  # the copy serves while there is none
        await ground.api.create(made)
        await ensured(name, "alice")
        assert await there(name) == ("kubernetes.io/dockerconfigjson", made.data)
    await ground.namespaces().ensure(theirs, "bob")
    with pytest.raises(NamespaceTaken):
        await ensured(theirs, "alice")
    assert await ground.api.get(Secret, "harbour", theirs) is None  # nothing of it comes to a stranger
    by_hand = pull_secret("harbour", theirs, "by hand")
    await ground.api.create(by_hand)
    await ensured(theirs, "bob")
    assert (await there(theirs))[1] == by_hand.data


async def test_a_pull_secret_that_was_replaced_is_followed(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "_PULLED_AGAIN", 0.0)
    name, own = (f"{ground.prefix}-{end}" for end in "up")
    homes = ground.namespaces(pull_secrets=("harbour",))
    await homes.ensure(own)
    for password in ("first", "second"):
        made = pull_secret("harbour", own, password)
        await ground.api.delete(Secret, "harbour", own)
        await ground.api.create(made)
        await homes.ensure(name, "alice")
        found = await ground.api.get(Secret, "harbour", name)
        assert found is not None
        assert found.data == made.data


def pull_secret(name: str, namespace: str, password: str) -> Any:
    known = json.dumps({"auths": {"registry.example.org": {"username": "hansa", "password": password}}})
    return Secret.from_dict(
        {
            "metadata": {"name": name, "namespace": namespace},
            "type": "kubernetes.io/dockerconfigjson",
            "data": {".dockerconfigjson": base64.b64encode(known.encode()).decode()},
        }
    )


async def test_hosts_put_an_order_where_it_belongs(ground: Ground) -> None:
    async def store_of(_order: object) -> dict[str, str]:
        return {}

    def engine(**homes: Any) -> Engine:
        shape, board = Shape(cluster="lubeck", stager_image="x"), Board(ground.api.client, "lubeck")
        return Engine(api=ground.api, board=board, shape=shape, homes=ground.namespaces(**homes), store_of=store_of)

    name = f"{ground.prefix}-u"
    asked = [order("true", namespace=name), order("true")]
    assert [engine().namespace_of(one) for one in asked] == [name, ground.prefix]
    assert [engine(allowed=("a", name)).namespace_of(one) for one in asked] == [name, "a"]
    await engine(owner_of=lambda _: "alice").prepare(asked[0])
    assert (await ground.found(name)).annotations["oscar.grycap.upv.es/owner"] == "alice"


async def test_users_never_run_where_secrets_are(ground: Ground) -> None:
    with pytest.raises(BadSetting, match="in which services run"):
        Namespaces(ground.api, "lubeck", default="hansa", private="hansa")
    with pytest.raises(BadSetting):
        Namespaces(ground.api, "lubeck", default="oscar-svc", private="hansa", allowed=("a", "hansa"))


@contextlib.asynccontextmanager
async def people(ground: Ground, folder: Path, cluster: str) -> AsyncIterator[People]:
    folder.mkdir()
    engine = make_engine(sqlite_url(folder))
    schema.upgrade(engine)
    database = Database(engine)
    database.start()
    try:
        grants = storage.Grants(None, storage.BucketRegister(BucketStore(database)))
        claim = ground.namespaces(cluster).claim
        yield People(PeopleStore(database), grants, Vault([Vault.new_key()]), ground.prefix, SystemClock(), claim=claim)
    finally:
        await database.close()


async def test_two_managers_that_share_a_kubernetes_keep_users_apart(ground: Ground, tmp_path: Path) -> None:
    """Also after one of them lost its database; where nobody was before, a user's name is the same everywhere."""
    one, two = (Caller(kind="user", uid=f"62bb11b40398f7377876-{end}", name=end, subject=end) for end in ("one", "two"))
    assert user_namespace(ground.prefix, one.uid) == user_namespace(ground.prefix, two.uid)
    async with people(ground, tmp_path / "a", "lubeck") as here, people(ground, tmp_path / "b", "visby") as there:
        given = [(await who.ensure(user)).namespace for who in (here, there) for user in (one, two)]
        assert given[0] == user_namespace(ground.prefix, one.uid)
        assert len(set(given)) == 4
    async with people(ground, tmp_path / "c", "visby") as back:
        assert [(await back.ensure(user)).namespace for user in (two, one)] == [given[3], given[2]]
    async with people(ground, tmp_path / "d", "lubeck") as back:
        assert [(await back.ensure(user)).namespace for user in (two, one)] == [given[1], given[0]]


async def test_no_quota_for_the_admin(ground: Ground) -> None:
    homes = ground.namespaces()
    await homes.ensure(ground.prefix)
    assert await ground.api.list(ResourceQuota, ground.prefix) == []
