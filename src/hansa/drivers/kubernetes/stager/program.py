"""The stager's two ways: `in` brings what the script needs and ends, `out` waits for its end and carries what it left.

`out` is a sidecar: Kubernetes ends it once the script has ended, with enough time to carry. It goes to work as soon as
the script's end is written down, if it is allowed to, and tells the result as it ends.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import msgspec

from hansa.drivers import s3
from hansa.drivers.kubernetes.stager import paper
from hansa.drivers.kubernetes.stager.paper import Paper, Told
from hansa.drivers.runs import log_levels
from hansa.drivers.runs.left_files import left_files
from hansa.drivers.runs.staging import Staging
from hansa.drivers.runs.stores import OrderStores
from hansa.kernel import errors
from hansa.storage import Keys, ObjectStore, StoreAddress

_LOOK_EVERY = 0.1  # a file in a shared folder: nothing tells of it across containers
_SEEN_WITHIN = 5.0  # seconds in which Kubernetes has surely looked at its containers
_ASK_EVERY, _GATE_TIMEOUT = 0.5, 10.0
_LONGEST = 2000  # characters of a last word; Kubernetes keeps 4096 bytes


class NoOwnStore:
    """Pods have the keys of their run's stores and no others."""

    def __getattr__(self, name: str) -> Any:
        raise errors.Invalid("no keys of the cluster's own store came with this job")


class PodFolders:
    """The run's folders as the stager sees them."""

    input, output, mount = Path("/job/input"), Path("/job/output"), Path(paper.MOUNT)

    @property
    def owner(self) -> int:
        return os.getuid()

    @property
    def mounted(self) -> dict[str, list[int]]:
        try:
            return msgspec.json.decode(Path(paper.MOUNTED).read_bytes(), type=dict[str, list[int]])
        except (FileNotFoundError, msgspec.DecodeError):
            return {}

    def note_mounted(self) -> None:
        noted = {file.relative: [file.size, file.modified] for file in left_files(self.mount, self.owner)}
        Path(paper.MOUNTED).write_bytes(msgspec.json.encode(noted))


def open_store(kind: str, config: Mapping[str, Any]) -> ObjectStore:
    verify = str(config.get("verify", "true")).lower() != "false"
    address = StoreAddress(str(config.get("endpoint") or ""), str(config.get("region") or "us-east-1"), verify)
    return s3.S3Store(address, Keys(str(config["access_key"]), str(config["secret_key"])))


class Stager:
    def __init__(self, told: Paper) -> None:
        self.paper = told
        self._level = str(told.service.get("log_level", ""))

    def say(self, level: str, text: str) -> None:
        if log_levels.lets_through(self._level, level):
            print(f"hansa {level}: {text[:4096]}", flush=True)

    async def bring(self) -> Told:
        PodFolders.input.mkdir(exist_ok=True)
        try:
            event = await self._event()
            async with self._stores(event) as stores:
                await self._staging(event, stores).bring()
        except (errors.HansaError, OSError, httpx.HTTPError) as error:
            self.say("ERROR", f"the script was not started: {error}")
            return Told(error=f"the script was not started: {error}"[:_LONGEST])
        return Told()

    async def carry(self, over: threading.Event) -> Told:
        code = await self._end(over)
        if code != "0":
            if next(left_files(PodFolders.output, os.getuid()), None) is None:
                return Told()
            self.say("WARNING", "outputs of a failed script are not stored")
            return Told(left=True)
        if not await self._allowed():
            self.say("WARNING", "another run of this job was given precedence; these outputs are thrown away")
            return Told(thrown_away=True)
        try:
            event = await self._event()
            async with self._stores(event) as stores:
                count = await self._staging(event, stores).carry()
        except (errors.HansaError, OSError, httpx.HTTPError) as error:
            self.say("ERROR", f"an output could not be stored: {error}")
            return Told(error=f"an output could not be stored: {error}"[:_LONGEST])
        self.say("DEBUG", f"{count} outputs stored")
        return Told(stored=count)

    def _stores(self, event: bytes) -> OrderStores:
        own: Any = NoOwnStore()
        return OrderStores(own, open_store, self.paper.order(event))

    def _staging(self, event: bytes, stores: OrderStores) -> Staging:
        return Staging(self.paper.order(event), PodFolders(), stores, self.say, self.paper.patience)

    async def _event(self) -> bytes:
        if not self.paper.event_url:
            return self.paper.event
        async with httpx.AsyncClient(timeout=60) as http:
            answer = await http.get(self.paper.event_url)
            return answer.raise_for_status().content

    async def _end(self, over: threading.Event) -> str:
        """The script's exit code, or "" if it was ended before it could say."""
        while True:
            last = over.is_set()  # looked at first: what was written before is seen
            if said := text(paper.END).strip():
                return said
            if last:
                return ""
            await asyncio.sleep(_LOOK_EVERY)

    async def _allowed(self) -> bool:
        """Decided by the manager, once; whoever waits in vain is ended by the pod's own limit."""
        if not self.paper.gate_url:
            return True
        async with httpx.AsyncClient(timeout=_GATE_TIMEOUT) as http:
            while True:
                with contextlib.suppress(httpx.HTTPError):
                    answer = await http.get(self.paper.gate_url)
                    if answer.status_code == httpx.codes.OK:
                        return answer.content == paper.YES
                await asyncio.sleep(_ASK_EVERY)


def text(path: str) -> str:
    """Empty if there is no such file."""
    try:
        return Path(path).read_text()
    except FileNotFoundError:
        return ""


async def carried(stager: Stager, over: threading.Event) -> Told:
    if kept := text(paper.STAGED):
        told = msgspec.json.decode(kept, type=Told)
    else:
        told = await stager.carry(over)
        _write(paper.STAGED, told)
    # One that ends before Kubernetes has seen the script's end is started again, and then ends here, too.
    await asyncio.to_thread(over.wait, _SEEN_WITHIN)
    return told


def _write(path: str, told: Told) -> None:
    Path(path).write_bytes(msgspec.json.encode(told))


def main(way: str, over: threading.Event) -> int:
    """`over` is set when Kubernetes wants it to end."""
    stager = Stager(msgspec.json.decode(Path(paper.ORDER_FOLDER, "order.json").read_bytes(), type=Paper))
    if way == "serve":
        from hansa.drivers.kubernetes.stager import worker  # noqa: PLC0415 - the other ways do without

        worker.serve(worker.Worker(stager.paper), text(f"{paper.ORDER_FOLDER}/token"), over)
        return 0
    told = asyncio.run(stager.bring() if way == "in" else carried(stager, over))
    _write("/dev/termination-log", told)
    return 1 if told.error else 0
