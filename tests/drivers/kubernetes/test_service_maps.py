"""What Kubernetes keeps of services, with no rights but those in the namespaces that were given."""

import contextlib
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from lightkube.resources.core_v1 import ConfigMap, Namespace, Secret

from drivers.kubernetes import keeping as scenes
from drivers.kubernetes import restricted
from drivers.kubernetes.keeping import SECRETS, Keeping, until, working
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.errors import ApiRefused
from hansa.drivers.kubernetes.namespaces import Namespaces
from hansa.drivers.kubernetes.service_maps import ServiceMaps
from real.kubernetes.access import Access


@pytest.fixture
async def narrow(kubernetes: Access, tmp_path: Path) -> AsyncIterator[Keeping]:
    """Two namespaces for users, and one of the manager's own, in which it keeps Secrets and nothing else."""
    own, *users = (f"{name}-{secrets.token_hex(5)}" for name in ("own", "a", "b"))
    rules = {own: ["secrets"], **{user: ["secrets", "configmaps"] for user in users}}
    async with kubernetes.client() as admin, contextlib.AsyncExitStack() as undo:
        for name in rules:
            undo.push_async_callback(admin.delete, Namespace, name)
        config = await restricted.account(admin, kubernetes, tmp_path / "account.json", rules)
        async with scenes.opened(kubernetes, tmp_path / "data", config=config, allowed=users, private=own) as opened:
            yield opened


async def test_nothing_outside_of_the_namespaces_given_is_needed(narrow: Keeping) -> None:
    first, second = narrow.homes.allowed
    async with working(narrow):
        await narrow.kept.add(narrow.record(namespace="oscar-svc-alice-52"), SECRETS)
        await narrow.kept.add(narrow.record("blue", namespace=second), SECRETS)
        assert await narrow.api.get(ConfigMap, "gray", first) is not None
        assert await narrow.api.get(ConfigMap, "blue", second) is not None
        await narrow.api.delete(Secret, "blue", second)
        await until(lambda: narrow.api.get(Secret, "blue", second))
        assert [(one.service, one.what) for one in narrow.kept.drift()] == [("blue", "the Secret blue is gone")]
    found = await narrow.maps.found()
    assert {(one.name, one.namespace, one.trouble) for one in found} == {("gray", first, ""), ("blue", second, "")}
    await narrow.kept.remove("gray")
    assert [one.name for one in await narrow.maps.found()] == ["blue"]


async def test_a_namespace_that_is_missing_is_named(kubernetes: Access, narrow: Keeping) -> None:
    api = Connection.open(kubernetes.kubeconfig)
    try:
        homes = Namespaces(api, "lubeck", default="x", private=narrow.private, allowed=("gone-missing",))
        with pytest.raises(ApiRefused) as refused:
            await ServiceMaps(api, homes).keep(narrow.record(), SECRETS)
        assert "a namespace is missing: gone-missing" in refused.value.hint
    finally:
        await api.close()
