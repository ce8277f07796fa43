"""A hub is lost for good, and its standby takes its place: how much is lost, and for how long?

A real hub (`hansa server`, SQLite) with a real manager, somebody who writes 20 times a second, and `hansa hub follow`
beside it, as on a standby's machine. The hub is killed (-9) shortly before the next file is due, which is the worst
moment; `hansa hub restore` brings the last file back into an empty folder, and the hub starts there, at its address.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from bench.figures import Figure, Part, Sizes
from hansa.client import HubClient, errors
from hansa.messages.clusters import FactsChange
from journeys.hub.members import member
from real.hub import ADMIN, Hub, a_hub

_CLUSTER = "visby"
_WRITES = 20  # a second
_LATE = 0.9  # of the time between two files: then it dies
_PATIENCE = 120.0
_LOOK_EVERY = 0.02
_PASSPHRASE = "seven small boats"


@dataclass(frozen=True, slots=True)
class Takeover:
    """One loss of the hub."""

    every: float  # seconds between two files
    acknowledged: int  # writes, since it followed
    lost_writes: int
    lost_seconds: float  # from the first write that is lost to the end
    restoring: float  # seconds of `hansa hub restore`
    writing: float  # seconds from the end until a write is acknowledged again
    reporting: float  # and until the manager has reported
    said: str  # of `hansa hub restore`: how many rows, and how long it took for them
    size: int  # bytes of the file


def standby(sizes: Sizes) -> Part:
    takeovers: list[Takeover] = []
    with contextlib.ExitStack() as undo:
        folder = Path(tempfile.mkdtemp(prefix="hansa-standby-"))
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        hub = undo.enter_context(a_hub({"hub.sync_every": 0.5, "hub.heartbeat_every": sizes.heartbeat}))
        undo.enter_context(member(hub, _CLUSTER))
        _until(lambda: hub.state(_CLUSTER) == "ready", "the manager is a member")
        for turn, every in enumerate(sizes.follow):
            takeovers.append(_lose(hub, folder / str(turn), every))
    return _part(takeovers, sizes.heartbeat)


def _lose(hub: Hub, folder: Path, every: float) -> Takeover:
    files = folder / "files"
    with _following(hub, files, every):
        _until(lambda: _files(files), "a first file")
        with _Writer(hub) as writer:
            known = max(_files(files))
            _until(lambda: max(_files(files)) > known, "a file of what is being written", every + _PATIENCE)
            time.sleep(every * _LATE)
            hub.kill()
            died, died_at = time.monotonic(), time.time()
    restored = _hansa(hub, "hub", "restore", str(files), data=folder / "data").strip()
    restoring = time.monotonic() - died
    hub.settings = {**hub.settings, "data": str(folder / "data")}
    hub.start()
    with _client(hub) as client:
        found = int(client.cluster(_CLUSTER).facts.metadata.get("written", "0"))
        client.change_facts(_CLUSTER, FactsChange(metadata={"written": str(writer.last)}))
        writing = time.monotonic() - died
        _until(lambda: (client.cluster(_CLUSTER).seen or 0.0) > died_at, "the manager reports")
        reporting = time.monotonic() - died
    lost = [at for number, at in writer.acknowledged if number > found]
    newest = max(_files(files))
    return Takeover(
        every=every,
        acknowledged=len(writer.acknowledged),
        lost_writes=len(lost),
        lost_seconds=died - lost[0] if lost else 0.0,
        restoring=restoring,
        writing=writing,
        reporting=reporting,
        said=restored.split(": ", 1)[-1].split(";")[0],
        size=newest.stat().st_size,
    )


class _Writer:
    """Says something new of a cluster, evenly, and remembers what was acknowledged and when."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.acknowledged: list[tuple[int, float]] = []
        self.last = 0

    def __enter__(self) -> "_Writer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _write(self) -> None:
        with _client(self._hub) as client:
            self.last = int(client.cluster(_CLUSTER).facts.metadata.get("written", "0"))
            due = time.monotonic()
            while not self._over.wait(max(0.0, due - time.monotonic())):
                due = max(due + 1 / _WRITES, time.monotonic())
                self.last += 1
                try:
                    client.change_facts(_CLUSTER, FactsChange(metadata={"written": str(self.last)}))
                except errors.HubError:
                    return  # it is gone; what was under way was not acknowledged
                self.acknowledged.append((self.last, time.monotonic()))


@contextlib.contextmanager
def _following(hub: Hub, folder: Path, every: float) -> Iterator[None]:
    words = [_program(), "hub", "follow", str(folder), "--every", str(every)]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(words, env=_environment(hub), stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _hansa(hub: Hub, *words: str, data: Path) -> str:
    env = {**_environment(hub), "HANSA_DATA": str(data)}
    done = subprocess.run([_program(), *words], env=env, capture_output=True, text=True, timeout=_PATIENCE, check=True)
    return done.stderr


def _program() -> str:
    return str(Path(sys.executable).with_name("hansa"))


def _environment(hub: Hub) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("HANSA_")}
    signed_in = {"HANSA_HUB": hub.url, "HANSA_HUB_USER": ADMIN, "HANSA_HUB_PASSWORD": hub.password}
    return env | signed_in | {"HANSA_HUB_PASSPHRASE": _PASSPHRASE, "HANSA_PROFILES": "none.toml"}


def _client(hub: Hub) -> HubClient:
    return HubClient(hub.url, user=ADMIN, password=hub.password)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("hub-*.backup"))


def _until(holds: Callable[[], object], what: str, seconds: float = _PATIENCE) -> None:
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(httpx.TransportError, errors.HubError):
            if holds():
                return
        if time.monotonic() > end:
            raise RuntimeError(f"after {seconds:g} s still not so: {what}")
        time.sleep(_LOOK_EVERY)


def _part(takeovers: list[Takeover], heartbeat: float) -> Part:
    figures: list[Figure] = []
    for one in takeovers:
        file = f"a file every {one.every:g} s"
        figures += [
            Figure(
                f"lost, {file}",
                f"{one.lost_seconds:.1f} s: {one.lost_writes} of {one.acknowledged} acknowledged writes",
                f"at most {one.every:g} s and the time a file takes",
                one.lost_seconds <= one.every + 1.0,
                "it died shortly before the next file was due",
            ),
            Figure(
                f"until a write is taken again, {file}",
                f"{one.writing:.1f} s",
                means=f"{one.restoring:.1f} s of it until `hansa hub restore` has ended ({one.said}, of a file of "
                f"{one.size // 1024} KiB), the rest until the hub is there: the start of two programs, mostly",
            ),
            Figure(f"until the manager has reported, {file}", f"{one.reporting:.1f} s"),
        ]
    return Part(
        "A standby takes over",
        f"A real hub on SQLite with a real manager that reports every {heartbeat:g} s, {_WRITES} writes a second, and "
        "`hansa hub follow` beside it. The hub is killed (-9); `hansa hub restore` and `hansa server` run at once, at "
        "the same address. That somebody, or something, has to notice first is not in it.",
        tuple(figures),
    )
