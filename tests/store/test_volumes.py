"""Volumes come back as they were written; a name is given once in a namespace."""

from dataclasses import replace

import pytest

from hansa.storage import Volume, VolumeExists
from hansa.store import Database
from hansa.store.volumes import VolumeStore

VOLUME = Volume("oscar-svc-alice", "models", "alice@example.org", 2**42, "gray", "delete", 1.5)


async def test_volumes_are_kept(database: Database) -> None:
    store = VolumeStore(database)
    other = replace(VOLUME, namespace="oscar-svc-bob")
    await store.add(VOLUME)
    await store.add(other)
    with pytest.raises(VolumeExists):
        await store.add(VOLUME)
    assert await store.all() == [VOLUME, other]
    await store.remove(VOLUME.namespace, VOLUME.name)
    assert await store.all() == [other]
