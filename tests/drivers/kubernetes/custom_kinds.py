"""A kind that Kubernetes learns of by its name alone, for tests of what others bring into a cluster."""

import asyncio
from typing import Any

from lightkube.resources.apiextensions_v1 import CustomResourceDefinition

from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.errors import ApiUnreachable

_SECONDS = 60.0


async def defined(api: Connection, kind: Any, plural: str) -> None:
    """`kind` is a resource of lightkube's; it takes whatever is in it."""
    about = kind._api_info.resource
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition: Any = CustomResourceDefinition.from_dict(
        {
            "metadata": {
                "name": f"{plural}.{about.group}",
                "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
            },
            "spec": {
                "group": about.group,
                "scope": "Namespaced",
                "names": {"plural": plural, "singular": about.kind.lower(), "kind": about.kind},
                "versions": [{"name": about.version, "served": True, "storage": True, "schema": schema}],
            },
        }
    )
    await api.create(definition)
    async with asyncio.timeout(_SECONDS):
        while True:
            try:
                await api.list(kind, "default")
            except ApiUnreachable:  # it is served a moment after it was defined
                await asyncio.sleep(0.1)
            else:
                return
