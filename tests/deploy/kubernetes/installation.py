"""The chart in a real cluster: installed as an operator would, and looked at from outside."""

import asyncio
import base64
import contextlib
import json
import secrets
import subprocess
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import httpx
from lightkube import AsyncClient
from lightkube.resources.apps_v1 import Deployment, StatefulSet
from lightkube.resources.core_v1 import (
    ConfigMap,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Secret,
    Service,
    ServiceAccount,
)
from lightkube.resources.networking_v1 import NetworkPolicy
from lightkube.resources.policy_v1 import PodDisruptionBudget
from lightkube.resources.rbac_authorization_v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from lightkube.types import PatchType

from deploy import chart
from real.kubernetes import build, hansa_image, kubernetes_manager
from real.kubernetes.access import Access
from real.kubernetes.helm_client import Helm

SECONDS = 150
_RESTRICTED = {f"pod-security.kubernetes.io/{way}": "restricted" for way in ("enforce", "warn")}
_CLUSTER_WIDE: tuple[Any, ...] = (ClusterRole, ClusterRoleBinding)
_KINDS: tuple[Any, ...] = (
    *(ConfigMap, Deployment, NetworkPolicy, PersistentVolumeClaim, Pod, PodDisruptionBudget, Role, RoleBinding),
    *(Secret, Service, ServiceAccount, StatefulSet, *_CLUSTER_WIDE),
)
_SMALL = {"requests": {"cpu": "20m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}}


def usual() -> dict[str, Any]:
    """Values of every test: there is no registry, and not much of anything."""
    repository, _, tag = hansa_image.SERVER.rpartition(":")
    return {"image": {"repository": repository, "tag": tag}, "resources": _SMALL}


def bring_images(access: Access) -> None:
    kubernetes_manager.bring_images(access)
    access.import_image(hansa_image.server_archive())
    kubernetes_manager.reach_pods(access)


def kubectl(access: Access, *words: str, given: str = "") -> "subprocess.CompletedProcess[str]":
    """What it did; `given` is its standard input."""
    programs = build.found()
    assert programs is not None
    command = [str(programs / "kubectl"), "--kubeconfig", str(access.kubeconfig), *words]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=SECONDS, check=False)


@dataclass(frozen=True, slots=True)
class Installation:
    """A release, of the namespace's own name so that no other has it."""

    helm: Helm
    access: Access
    api: AsyncClient
    namespace: str

    @property
    def name(self) -> str:
        return self.namespace

    async def upgrade(self, values: Mapping[str, Any]) -> None:
        """Installs it, or makes it another; returns when it is ready."""
        words = ("upgrade", "--install", self.name, str(chart.CHART), "--namespace", self.namespace)
        patience = ("--wait", "--timeout", f"{SECONDS}s")
        told = await asyncio.to_thread(self.helm.run, *words, *patience, values={**usual(), **values})
        assert told.ok, f"{told.stderr}\n{await self.trouble()}"

    async def uninstall(self) -> None:
        """Returns when its pods have ended, too."""
        words = ("uninstall", self.name, "--namespace", self.namespace, "--ignore-not-found")
        patience = ("--wait", "--cascade", "foreground", "--timeout", f"{SECONDS}s")
        told = await asyncio.to_thread(self.helm.run, *words, *patience)
        assert told.ok, told.stderr

    async def pods(self) -> list[Any]:
        marks: dict[str, Any] = {"app.kubernetes.io/instance": self.name}
        found = [pod async for pod in self.api.list(Pod, namespace=self.namespace, labels=marks)]
        return [pod for pod in found if pod.metadata and pod.metadata.deletionTimestamp is None]

    async def pod(self) -> Any:
        (found,) = await self.pods()
        return found

    async def password(self) -> str:
        secret = await self.api.get(Secret, self.fullname, namespace=self.namespace)
        return base64.b64decode((secret.data or {})["admin-password"]).decode()

    @property
    def fullname(self) -> str:
        return f"{self.name}-hansa"

    async def door(self, port: int) -> httpx.Client:
        """Its API as the admin, straight at its pod; whoever asks closes it."""
        address = (await self.pod()).status.podIP
        signed = httpx.BasicAuth("admin", await self.password())
        return httpx.Client(base_url=f"http://{address}:{port}", auth=signed, trust_env=False, timeout=120)

    async def address(self) -> str:
        """Of its Service, as we reach it from outside: names are known to pods alone."""
        found = await self.api.get(Service, self.fullname, namespace=self.namespace)
        assert found.spec is not None
        assert found.spec.clusterIP is not None
        return found.spec.clusterIP

    async def lacks(self) -> list[str]:
        """The rights that `hansa doctor` misses, asked from within its pod."""
        name = (await self.pod()).metadata.name
        asked = ("exec", name, "--container", "hansa", "--", "python3", "-m", "hansa", "doctor", "--json")
        done = await asyncio.to_thread(kubectl, self.access, "--namespace", self.namespace, *asked)
        found = [one for one in json.loads(done.stdout) if one["name"].startswith("right")]
        assert found, done.stderr
        return [f"{one['name']}: {one['detail']}" for one in found if not one["ok"]]

    async def secrets(self, marks: Mapping[str, Any] | None = None) -> set[str]:
        """By their names; those with such marks, or all."""
        asked = dict(marks) if marks else None
        found = [one async for one in self.api.list(Secret, namespace=self.namespace, labels=asked)]
        return {str(one.metadata.name) for one in found if one.metadata}

    async def left(self) -> set[tuple[str, str]]:
        """What is there of it, by kind and name, without what Kubernetes makes and removes by itself."""
        found = set()
        marks: dict[str, Any] = {"app.kubernetes.io/instance": self.name}
        for kind in _KINDS:
            where: dict[str, Any] = {} if kind in _CLUSTER_WIDE else {"namespace": self.namespace}
            async for one in self.api.list(kind, labels=marks, **where):
                assert one.metadata is not None
                found.add((kind.__name__, str(one.metadata.name)))
        return found

    async def trouble(self) -> str:
        """What its pods say of themselves."""
        said = []
        for pod in await self.pods():
            states = [*(pod.status.initContainerStatuses or ()), *(pod.status.containerStatuses or ())]
            said.append(f"{pod.metadata.name}: {pod.status.phase} {[one.state.to_dict() for one in states]}")
            with self.access.http() as door:
                log = f"/api/v1/namespaces/{self.namespace}/pods/{pod.metadata.name}/log?tailLines=30"
                said += [door.get(f"{log}&previous={former}").text for former in ("true", "false")]
        return "\n".join(said)


@contextlib.asynccontextmanager
async def installing(helm: Helm, access: Access, namespace: str) -> AsyncIterator[Installation]:
    """Nothing is installed yet. The namespace is closed to pods that are not restricted."""
    async with access.client() as api:
        change = {"metadata": {"labels": _RESTRICTED}}
        await api.patch(Namespace, namespace, change, patch_type=PatchType.MERGE)
        made = Installation(replace(helm, kubeconfig=access.kubeconfig), access, api, namespace)
        try:
            yield made
        finally:
            await made.uninstall()


@contextlib.asynccontextmanager
async def volume(access: Access) -> AsyncIterator[str]:
    """A volume made by hand, on the node's disk: of a kind whose files are given to the pod's group, as usual ones."""
    name = f"test-{secrets.token_hex(6)}"
    folder = f"/var/lib/kubelet/{name}"
    await asyncio.to_thread(access.inside, "mkdir", "-p", folder)
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [access.node]}
    made: Any = PersistentVolume.from_dict(
        {
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "",
                "local": {"path": folder},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
            },
        }
    )
    async with access.client() as api:
        await api.create(made)
        try:
            yield name
        finally:
            await api.delete(PersistentVolume, name)
            await asyncio.to_thread(access.inside, "rm", "-rf", folder)


def on(volume_name: str) -> dict[str, Any]:
    """Values that use it."""
    return {"volumeName": volume_name, "storageClass": "-", "size": "1Gi"}
