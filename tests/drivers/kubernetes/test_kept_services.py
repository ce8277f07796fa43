"""Services are in the database and in Kubernetes: neither a crash, nor a lost database, nor a hand at the wrong place
loses one or brings back one that was deleted."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Namespace, Secret

from drivers.kubernetes import keeping as scenes
from drivers.kubernetes.keeping import SECRETS, Keeping, until, working
from hansa.drivers.kubernetes import service_manifest
from hansa.drivers.kubernetes.errors import ApiUnreachable
from hansa.drivers.kubernetes.service_manifest import DefinitionTooLarge
from hansa.drivers.kubernetes.service_maps import InTheWay
from hansa.services import Record, ServiceBusy, ServiceExists
from real.kubernetes.cluster import Component, KubernetesCluster


@pytest.fixture
async def keeping(kubernetes_api: KubernetesCluster, tmp_path: Path) -> AsyncIterator[Keeping]:
    kubernetes_api.restore()
    async with scenes.opened(kubernetes_api.access, tmp_path / "data") as opened:
        yield opened


def scripted(record: Record, script: str) -> Record:
    return replace(record, service=msgspec.structs.replace(record.service, script=script))


async def private(keeping: Keeping, name: str = "gray") -> Any | None:
    named = service_manifest.private_name(name, keeping.homes.cluster)
    return await keeping.api.get(Secret, named, keeping.private)


async def test_it_is_there_and_gone_in_both(keeping: Keeping) -> None:
    record = keeping.record()
    await keeping.kept.add(record, SECRETS)
    assert keeping.kept.get("gray") == record
    assert await keeping.script() == "true"
    assert await keeping.api.get(Secret, "gray", keeping.namespace) is not None
    assert await private(keeping) is not None
    fresh = await keeping.kept.replace(scripted(record, "false"), {}, record.version)
    assert (fresh.version, await keeping.script()) == (2, "false")
    assert await keeping.api.get(Secret, "gray", keeping.namespace) is None
    await keeping.kept.remove("gray")
    assert keeping.kept.all() == []
    assert await keeping.config_map() is None
    assert await private(keeping) is None


async def test_the_ports_own_refusals_change_nothing(keeping: Keeping) -> None:
    record = keeping.record()
    await keeping.kept.add(record, {})
    with pytest.raises(ServiceExists):
        await keeping.kept.add(scripted(record, "other"), {})
    with pytest.raises(ServiceBusy):
        await keeping.kept.replace(scripted(record, "other"), {}, 9)
    with pytest.raises(DefinitionTooLarge):
        await keeping.kept.replace(scripted(record, "x" * 2**20), {}, 1)
    assert await keeping.script() == "true"
    assert keeping.kept.get("gray") == record


async def test_a_lost_database_loses_no_service(keeping: Keeping, kubernetes_api: KubernetesCluster) -> None:
    await keeping.kept.add(keeping.record(), SECRETS)
    await keeping.kept.add(keeping.record("half", script="x"), {})
    half = keeping.kept.get("half")
    assert half is not None
    await keeping.kept.replace(replace(half, phase="deleting"), {}, 1)
    async with scenes.opened(kubernetes_api.access, keeping.folder.parent / "empty", keeping) as again:
        await again.kept.load()
        assert again.kept.all() == [keeping.record()]
        assert again.kept.secrets("gray") == SECRETS
        assert await again.config_map("half") is None
        assert await private(again, "half") is None


async def test_another_managers_services_are_left_alone(keeping: Keeping, kubernetes_api: KubernetesCluster) -> None:
    await keeping.kept.add(keeping.record(), SECRETS)
    async with scenes.opened(kubernetes_api.access, keeping.folder.parent / "other") as other:
        await other.kept.load()
        assert other.kept.all() == []
        mine = replace(other.record(), service=keeping.record().service)
        with pytest.raises(InTheWay, match="not ours"):
            await other.kept.add(mine, {})
        assert other.kept.all() == []
        await other.maps.remove(mine)
    assert await keeping.script() == "true"


async def test_a_service_whose_secrets_are_lost_is_told(keeping: Keeping, kubernetes_api: KubernetesCluster) -> None:
    await keeping.kept.add(keeping.record(), SECRETS)
    named = service_manifest.private_name("gray", keeping.homes.cluster)
    await keeping.api.delete(Secret, named, keeping.private)
    async with scenes.opened(kubernetes_api.access, keeping.folder.parent / "empty", keeping) as again:
        await again.kept.load()
        assert again.kept.all() == []
        (told,) = again.kept.drift()
        assert f"its Secret in namespace {keeping.private} is gone" in told.what
        assert await again.config_map() is not None


async def test_killed_after_the_row_of_a_new_service(keeping: Keeping, kubernetes_api: KubernetesCluster) -> None:
    """As `creation.recover` finds it: a create that is taken back."""
    await keeping.inner.add(replace(keeping.record(), phase="creating"), SECRETS)
    async with scenes.opened(kubernetes_api.access, keeping.folder, keeping) as again, working(again):
        await again.kept.load()
        assert [one.phase for one in again.kept.all()] == ["creating"]
        await again.kept.remove("gray")
        assert again.kept.all() == []
        assert await again.config_map() is None


async def test_killed_between_the_writes_of_a_change(keeping: Keeping, kubernetes_api: KubernetesCluster) -> None:
    record = keeping.record()
    await keeping.kept.add(record, SECRETS)
    await keeping.inner.replace(scripted(record, "false"), SECRETS, 1)
    async with scenes.opened(kubernetes_api.access, keeping.folder, keeping) as again, working(again):
        await again.kept.load()
        await until(lambda: is_script(again, "false"))
        assert again.kept.drift() == []


async def test_killed_while_a_service_was_removed(keeping: Keeping, kubernetes_api: KubernetesCluster) -> None:
    record = keeping.record()
    await keeping.kept.add(record, SECRETS)
    leaving = await keeping.kept.replace(replace(record, phase="deleting"), SECRETS, 1)
    await keeping.maps.remove(leaving)
    async with scenes.opened(kubernetes_api.access, keeping.folder, keeping) as again:
        await again.kept.load()
        async with working(again):
            await again.kept.add(again.record("later"), {})  # a turn of the loop later
            await edited(again, "later")
            await until(lambda: is_script(again, "true", "later"))
        assert await again.config_map() is None
        await again.kept.remove("gray")
        assert [one.service.name for one in again.kept.all()] == ["later"]


async def is_script(keeping: Keeping, text: str, name: str = "gray") -> bool:
    return await keeping.script(name) == text


async def edited(keeping: Keeping, name: str = "gray") -> None:
    assert await keeping.api.merge(ConfigMap, name, keeping.namespace, {"data": {"script.sh": "by hand"}})


async def test_an_edit_by_hand_is_told_and_repaired(keeping: Keeping) -> None:
    await keeping.kept.add(keeping.record(), SECRETS)
    async with working(keeping):
        await edited(keeping)
        await until(lambda: is_script(keeping, "true"))
    (told,) = keeping.kept.drift()
    assert (told.service, told.repaired) == ("gray", True)
    assert told.what == "script.sh of the ConfigMap gray was changed"


async def test_what_is_deleted_by_hand_comes_back(keeping: Keeping) -> None:
    await keeping.kept.add(keeping.record(), SECRETS)
    named = service_manifest.private_name("gray", keeping.homes.cluster)
    async with working(keeping):
        await keeping.api.merge(ConfigMap, "gray", keeping.namespace, {"metadata": {"labels": None}})
        await until(lambda: is_marked(keeping))
        await keeping.api.delete(ConfigMap, "gray", keeping.namespace)
        await until(keeping.config_map)  # written last: the repair is complete
        await keeping.api.delete(Secret, named, keeping.private)
        await until(lambda: private(keeping))
    assert [one.what for one in keeping.kept.drift()] == [
        "the label oscar_service of the ConfigMap gray was removed",
        "the ConfigMap gray is gone",
        f"the Secret {named} is gone",
    ]


async def is_marked(keeping: Keeping) -> bool:
    found = await keeping.config_map()
    return found is not None and "oscar_service" in (found.metadata.labels or {})


async def test_a_namespace_deleted_by_hand_comes_back(keeping: Keeping) -> None:
    await keeping.kept.add(keeping.record(), SECRETS)
    async with working(keeping):
        await keeping.api.delete(Namespace, keeping.namespace)
        await until(lambda: is_gone(keeping))
        await until(keeping.config_map)
        assert await keeping.api.get(Secret, "gray", keeping.namespace) is not None


async def is_gone(keeping: Keeping) -> bool:
    """Or was: another one of the name has another age."""
    found = await keeping.api.get(ConfigMap, "gray", keeping.namespace)
    return found is None


async def test_two_writers_do_not_fight_without_end(kubernetes_api: KubernetesCluster, tmp_path: Path) -> None:
    async with scenes.opened(kubernetes_api.access, tmp_path / "data", repairs=2) as keeping:
        await keeping.kept.add(keeping.record(), SECRETS)
        async with working(keeping):
            for _ in range(2):
                await edited(keeping)
                await until(lambda: is_script(keeping, "true"))
            await edited(keeping)
            await until(lambda: told_of(keeping, 3))
            assert await keeping.script() == "by hand"
    assert [one.repaired for one in keeping.kept.drift()] == [True, True, False]


async def told_of(keeping: Keeping, times: int) -> bool:
    return len(keeping.kept.drift()) == times


async def test_ordinary_changes_are_nobodys_drift(keeping: Keeping) -> None:
    async with working(keeping):
        for name in ("a", "b", "c"):
            record = keeping.record(name)
            await keeping.kept.add(replace(record, phase="creating"), SECRETS)
            for turn in range(1, 6):
                await keeping.kept.replace(scripted(record, f"echo {turn}"), SECRETS if turn % 2 else {}, turn)
        await keeping.kept.remove("b")
        await edited(keeping, "c")
        await until(lambda: is_script(keeping, "echo 5", "c"))
    assert [one.service for one in keeping.kept.drift()] == ["c"]


async def test_a_service_nobody_knows_is_told_and_left(keeping: Keeping) -> None:
    async with working(keeping):
        await keeping.maps.keep(keeping.record(), SECRETS)
        await until(lambda: told_of(keeping, 1))
    assert "the database does not have" in keeping.kept.drift()[0].what
    assert await keeping.config_map() is not None


async def test_an_object_in_the_way_refuses_a_create_and_leaves_nothing(keeping: Keeping) -> None:
    await keeping.homes.ensure(keeping.namespace)
    theirs = ConfigMap(metadata=ObjectMeta(name="gray", namespace=keeping.namespace), data={"a": "b"})
    await keeping.api.create(theirs)
    async with working(keeping):
        with pytest.raises(InTheWay, match="a ConfigMap named gray"):
            await keeping.kept.add(keeping.record(), SECRETS)
        assert keeping.kept.all() == []
        await until(lambda: is_without_secret(keeping))
    found = await keeping.config_map()
    assert found is not None
    assert found.data == {"a": "b"}


async def is_without_secret(keeping: Keeping) -> bool:
    return await private(keeping) is None


async def test_without_the_api_server(keeping: Keeping, kubernetes_api: KubernetesCluster) -> None:
    """A create fails whole, a change is durable and brought later, a delete says that it has to be tried again."""
    record = keeping.record()
    await keeping.kept.add(record, SECRETS)
    async with working(keeping):
        kubernetes_api.kill(Component.API)
        with pytest.raises(ApiUnreachable):
            await keeping.kept.add(keeping.record("new"), {})
        assert keeping.kept.get("new") is None
        fresh = await keeping.kept.replace(scripted(record, "false"), SECRETS, 1)
        assert keeping.kept.get("gray") == fresh
        with pytest.raises(ApiUnreachable):
            await keeping.kept.remove("gray")
        assert keeping.kept.get("gray") == fresh
        kubernetes_api.again(Component.API)
        await until(lambda: has_script(keeping, "false"))
        assert keeping.kept.drift() == []
        assert await keeping.config_map("new") is None
    assert keeping.inner.get("gray") == fresh


async def test_a_start_waits_for_the_api_server(keeping: Keeping, kubernetes_api: KubernetesCluster) -> None:
    await keeping.kept.add(keeping.record(), SECRETS)
    async with scenes.opened(kubernetes_api.access, keeping.folder.parent / "empty", keeping) as again:
        kubernetes_api.kill(Component.API)
        loading = asyncio.create_task(again.kept.load())
        with pytest.raises(ApiUnreachable):
            await again.maps.found()
        assert not loading.done()
        kubernetes_api.again(Component.API)
        async with asyncio.timeout(scenes.PATIENCE):
            await loading
        assert again.kept.all() == [keeping.record()]


async def has_script(keeping: Keeping, text: str) -> bool:
    try:
        return await keeping.script() == text
    except ApiUnreachable:
        return False
