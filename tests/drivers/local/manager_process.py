"""A manager that runs one job with a store that is not there, to be killed between the script and the upload."""

import asyncio
import json
import socket
import sys
from pathlib import Path
from typing import Any

from contracts.orders import order
from hansa.drivers.local import images
from hansa.drivers.local.background import Background
from hansa.drivers.local.disks import Disks, trouble
from hansa.drivers.local.engine import Engine
from hansa.drivers.local.job_host import LocalJobHost
from hansa.drivers.local.job_logs import LogBook
from hansa.drivers.local.runtime import HostRuntime
from hansa.drivers.local.staging import OwnStore
from hansa.kernel.errors import Temporary
from hansa.services import StorageIO
from hansa.storage import Keys, StoreAddress

NOBODY_LISTENS = StoreAddress("http://127.0.0.1:1", "", verify=True)


async def dial(host: str, port: int, own: bool, whose: str) -> socket.socket:
    raise Temporary("nobody listens")


async def main(told: dict[str, Any]) -> None:
    home = Path(told["home"])
    runtime = await HostRuntime.open(instance="killed", uid_base=told["uid_base"], run_dir=home / "launcher-killed")
    engine = Engine(
        runtime=runtime,
        own=OwnStore(address=NOBODY_LISTENS, root=Keys("key", "secret-secret"), later=Background().start),
        dial=dial,
        work=home / "work",
        node="node-1",
        disks=Disks.open(home / "work", hard=not trouble(), size=images.SMALLEST),
    )
    output = (StorageIO(storage_provider="minio.default", path=told["output"]),)
    job = order(told["script"], output=output)
    object.__setattr__(job, "name", told["name"])
    if "disk" in told:
        object.__setattr__(job, "disk", told["disk"])
    await LocalJobHost(engine, LogBook(home / "logs", limit=64 * 1024)).run(job)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
