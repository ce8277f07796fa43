"""A manager that runs one job with a store that is not there, to be killed between the script and the upload."""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contracts.orders import order
from hansa.drivers.local.engine import Engine
from hansa.drivers.local.job_host import LocalJobHost
from hansa.drivers.local.job_logs import LogBook
from hansa.drivers.local.runtime import HostRuntime
from hansa.drivers.s3 import S3Store
from hansa.services import StorageIO
from hansa.storage import Keys, ObjectStore, StoreAddress

NOBODY_LISTENS = "http://127.0.0.1:1"


def open_foreign(kind: str, config: Mapping[str, Any]) -> ObjectStore:
    raise NotImplementedError("this job has no foreign store")


async def main(told: dict[str, Any]) -> None:
    home = Path(told["home"])
    runtime = await HostRuntime.open(instance="killed", uid_base=told["uid_base"], run_dir=home / "launcher-killed")
    engine = Engine(
        runtime=runtime,
        store=S3Store(StoreAddress(NOBODY_LISTENS, "", verify=True), Keys("key", "secret-secret")),
        open_foreign=open_foreign,
        work=home / "work",
        node="node-1",
    )
    output = (StorageIO(storage_provider="minio.default", path=told["output"]),)
    job = order(told["script"], output=output)
    object.__setattr__(job, "name", told["name"])
    await LocalJobHost(engine, LogBook(home / "logs", limit=64 * 1024)).run(job)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
