"""How does a claim get a disk where nothing makes any? As an administrator would offer one: a folder of the node.

    async with offered(access, tmp_path / "disk", storage_class="fast"): …
    async with offered(access, tmp_path / "disk", claim=("north", "models")): …     # for this claim, without a class

It goes with its claim; what is in the folder stays.
"""

import contextlib
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

from lightkube import ApiError
from lightkube.models.core_v1 import (
    LocalVolumeSource,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectReference,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
)
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import PersistentVolume

from real.kubernetes.access import Access


@contextlib.asynccontextmanager
async def offered(
    access: Access, folder: Path, *, storage_class: str = "", claim: tuple[str, str] | None = None
) -> AsyncIterator[None]:
    folder.mkdir(mode=0o700)
    here = NodeSelectorRequirement(key="kubernetes.io/hostname", operator="In", values=[access.node])
    name = f"disk-{secrets.token_hex(5)}"
    made = PersistentVolume(
        metadata=ObjectMeta(name=name),
        spec=PersistentVolumeSpec(
            capacity={"storage": "1Gi"},
            accessModes=["ReadWriteOnce"],
            persistentVolumeReclaimPolicy="Retain",
            storageClassName=storage_class,
            local=LocalVolumeSource(path=str(folder)),
            nodeAffinity=VolumeNodeAffinity(NodeSelector([NodeSelectorTerm(matchExpressions=[here])])),
            claimRef=ObjectReference(namespace=claim[0], name=claim[1]) if claim else None,
        ),
    )
    async with access.client() as api:
        await api.create(made)
        try:
            yield
        finally:
            with contextlib.suppress(ApiError):
                await api.delete(PersistentVolume, name)
