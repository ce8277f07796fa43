"""What the manager keeps for itself, a refresh token above all, can no pod of a user read or mount."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from lightkube import ApiError, AsyncClient, KubeConfig
from lightkube.config.kubeconfig import SingleConfig
from lightkube.config.models import User
from lightkube.models.authentication_v1 import BoundObjectReference, TokenRequestSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Event, Pod, Secret, ServiceAccount

from contracts.orders import order
from drivers.kubernetes import keeping as scenes
from drivers.kubernetes.keeping import PATIENCE, SECRETS, Keeping, until
from hansa.drivers.kubernetes import pods, service_manifest
from hansa.drivers.kubernetes.pods import Shape
from real.kubernetes import images
from real.kubernetes.access import Access


@pytest.fixture
async def keeping(kubernetes: Access, tmp_path: Path) -> AsyncIterator[Keeping]:
    async with scenes.opened(kubernetes, tmp_path / "data") as opened:
        await opened.kept.add(opened.record(), SECRETS)
        await until(lambda: opened.api.get(ServiceAccount, "default", opened.namespace))
        yield opened


async def pod(keeping: Keeping, name: str, volumes: list[dict[str, Any]], **more: Any) -> Any:
    """As restricted as ours are, and otherwise whatever its author wants."""
    asked = order("", image=images.BUSYBOX, cpu=10)
    mounts = [{"name": one["name"], "mountPath": f"/{one['name']}"} for one in volumes]
    body = pods.body(
        asked,
        Shape(cluster="x", stager_image="x"),
        restartPolicy="Never",
        terminationGracePeriodSeconds=0,
        containers=[pods.script(asked, mounts, command=["/bin/sh", "-c", "sleep 300"])],
        volumes=volumes,
    )
    made = Pod.from_dict({"metadata": {"name": name, "namespace": keeping.namespace}, "spec": {**body, **more}})
    return await keeping.api.create(made)


def secret_of(keeping: Keeping) -> str:
    return service_manifest.private_name("gray", keeping.homes.cluster)


async def test_its_text_is_nowhere_in_the_users_namespace(keeping: Keeping) -> None:
    found = [
        *await keeping.api.list(Secret, keeping.namespace),
        *await keeping.api.list(ConfigMap, keeping.namespace),
    ]
    assert len(found) >= 2
    told = str([one.to_dict() for one in found])
    assert "for-the-script" not in told  # it is there, in base64
    assert not [word for word in ("r3fresh", "cjNmcmVzaA", "refresh_token: r", "t0ken", "dDBrZW4") if word in told]


async def test_a_pod_cannot_mount_it(keeping: Keeping) -> None:
    """A Secret is looked for in the pod's own namespace, whatever it is called."""
    volume = {"name": "wanted", "secret": {"secretName": secret_of(keeping)}}
    await pod(keeping, "thief", [volume])
    async with asyncio.timeout(PATIENCE):
        while f'secret "{secret_of(keeping)}" not found' not in await said(keeping, "thief"):
            await asyncio.sleep(0.2)
    found = await keeping.api.get(Pod, "thief", keeping.namespace)
    assert found is not None
    assert found.status.phase == "Pending"


async def said(keeping: Keeping, name: str) -> str:
    told = await keeping.api.list(Event, keeping.namespace, fields={"involvedObject.name": name})
    return " ".join(one.message or "" for one in told)


async def test_a_pods_own_identity_cannot_read_it(keeping: Keeping, kubernetes: Access) -> None:
    made = await pod(keeping, "asker", [], automountServiceAccountToken=True)
    bound = BoundObjectReference(apiVersion="v1", kind="Pod", name="asker", uid=made.metadata.uid)
    asked = ServiceAccount.Token(metadata=ObjectMeta(), spec=TokenRequestSpec(audiences=[], boundObjectRef=bound))
    given: Any = await keeping.api.client.create(asked, "default", namespace=keeping.namespace)
    config = KubeConfig.from_file(kubernetes.kubeconfig).get()
    assert config is not None
    own = SingleConfig(
        context_name="pod", context=config.context, cluster=config.cluster, user=User(token=given.status.token)
    )
    client = AsyncClient(config=own, trust_env=False)
    try:
        for call in (
            client.get(Secret, secret_of(keeping), namespace=keeping.private),
            client.get(Secret, "gray", namespace=keeping.namespace),
            client.get(ConfigMap, "gray", namespace=keeping.namespace),
            client.delete(Secret, secret_of(keeping), namespace=keeping.private),
        ):
            with pytest.raises(ApiError) as refused:
                await call
            assert refused.value.status.code == 403
            assert f"system:serviceaccount:{keeping.namespace}:default" in str(refused.value.status.message)
        with pytest.raises(ApiError) as refused:
            assert [one async for one in client.list(Secret, namespace="*")] == []
        assert refused.value.status.code == 403
    finally:
        await client.close()
