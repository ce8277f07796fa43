"""Where is the key that opens our database's secrets? In the manager's own namespace, too: managers that share their
work have the same, and who lost their folder gets it back.
"""

import asyncio
import base64
import os
from pathlib import Path
from typing import Any

from lightkube.resources.core_v1 import Secret

from hansa.drivers.kubernetes import labels
from hansa.drivers.kubernetes.connection import Connection
from hansa.identity import Vault
from hansa.kernel import errors

_KEY = "vault.key"


class KeysDiffer(errors.Conflict):
    """The vault's key in the data folder is not the one in Kubernetes."""

    code = "kubernetes.keys-differ"


async def settle(api: Connection, cluster: str, namespace: str, path: Path) -> None:
    """The same key is in the file and in Kubernetes. Whoever comes first makes it."""
    name = f"hansa-{labels.value(cluster).lower()}-vault"
    found = await api.get(Secret, name, namespace)
    if found is None:
        found = await api.create(_secret(name, namespace, cluster, await asyncio.to_thread(_own, path)))
    if found is None:
        found = await api.get(Secret, name, namespace)  # another was faster
    if not await asyncio.to_thread(_is_there, path, _content(found)):
        raise KeysDiffer(
            f"the key {path} is not the one in Secret {name} of namespace {namespace}",
            hint="one of them opens the secrets of this manager's database: keep that one, and remove the other",
        )


def _secret(name: str, namespace: str, cluster: str, content: bytes) -> Any:
    return Secret.from_dict(
        {
            "metadata": {"name": name, "namespace": namespace, "labels": labels.of_cluster(cluster)},
            "type": "Opaque",
            "data": {_KEY: base64.b64encode(content).decode()},
        }
    )


def _content(found: Any) -> bytes:
    return base64.b64decode((found.data or {}).get(_KEY, "")) if found is not None else b""


def _own(path: Path) -> bytes:
    Vault.at(path)  # makes it if there is none
    return path.read_bytes()


def _is_there(path: Path, content: bytes) -> bool:
    """It is written if there is none; False if there is another."""
    if path.exists():
        return path.read_bytes() == content
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    return True
