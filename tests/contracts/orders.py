"""Orders for the contract suites of the hosts: small services around one script."""

import uuid
from dataclasses import replace
from typing import Any

from hansa.services import RunOrder, Service, VolumeMount, reach_of

MIB = 2**20


def order(
    script: str,
    *,
    event: bytes = b"",
    secrets: dict[str, str] | None = None,
    providers: dict[str, dict[str, str]] | None = None,
    seconds: float = 60,
    cpu: int = 500,
    memory: int = 64 * MIB,
    mounts: tuple[VolumeMount, ...] = (),
    disk: int = 64 * MIB,
    **fields: Any,
) -> RunOrder:
    """`fields` are those of the service."""
    fields = {"name": "tool", "image": "tool:1", "token": "f" * 64} | fields
    made = RunOrder(
        name=f"{fields['name']}-{uuid.uuid4()}",
        service=Service(script=script, **fields),
        secrets=secrets or {},
        providers=providers or {},
        event=event,
        cpu=cpu,
        memory=memory,
        seconds=seconds,
        mounts=mounts,
        disk=disk,
    )
    # Who submits it and who owns the service may use every bucket: rights are not what these suites are about.
    return replace(made, reach=reach_of(made, "anybody", lambda user, bucket: True))
