"""What does a federation of thousands of clusters cost its hub, and does it grow evenly?

The real hub (`hansa server`, SQLite) in one process, managers (`bench.simulated_clusters`) in another, people who read
(`bench.readers`) in a third. The federation grows in steps; after each the hub's processor time is taken while all
clusters report.
"""

import itertools
import sqlite3
import statistics
import threading
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.figures import Figure, Part, Sizes, percentile
from bench.load import Variant, cpu_seconds, take_turns
from bench.partner import Partner, partner
from bench.readers import INVENTORY, LIST, ONE, STATUS
from bench.simulated_clusters import NODES
from real.hub import ADMIN, Hub, a_hub

_CLIENTS = 50
_LOOK_EVERY = 0.1
_SETTINGS: Mapping[str, Any] = {
    "hub.sync_every": 0.5,
    "hub.lease_seconds": 5.0,
    "log.form": "json",
}


@dataclass(frozen=True, slots=True)
class Grown:
    """How clusters came in."""

    clusters: int
    joining: float  # seconds from the first to the last
    cpu_token: float  # processor seconds of the hub for each
    cpu_join: float
    cpu_connect: float


@dataclass(frozen=True, slots=True)
class Steady:
    """A while in which all clusters reported."""

    clusters: int
    share: float  # of one processor, the hub's
    beats: int
    answers: Sequence[float]
    lags: Sequence[float]
    missed: int  # heartbeats that were not answered well, or not in time for the next one
    flushes: Sequence[float]  # the longest time from hearing to disk, of each look
    memory: float  # bytes of the hub
    reads: Mapping[str, Sequence[float]] = field(default_factory=dict)
    failed_reads: int = 0


def hub(sizes: Sizes) -> Part:
    with a_hub({**_SETTINGS, "hub.heartbeat_every": sizes.heartbeat}) as real:
        login = f"{ADMIN}:{real.password}"
        common = {"port": real.port, "members_port": real.members_port, "login": login}
        with (
            partner("bench.simulated_clusters", every=sizes.heartbeat, **common) as managers,
            partner("bench.readers", clients=_CLIENTS, **common) as readers,
        ):
            idle = _share(real, sizes.steady / 4)
            grown: list[Grown] = []
            steady: list[Steady] = []
            for size in sizes.clusters:
                have = steady[-1].clusters if steady else 0
                grown.append(_grow(real, managers, size - have))
                time.sleep(sizes.heartbeat)  # what a join stirs up has settled then
                steady.append(_listen(real, managers, size, sizes.steady))
            read = _listen(real, managers, steady[-1].clusters, 2 * sizes.steady, readers)
            whole = _answers(real, steady[-1], sizes)
    return _part(sizes.heartbeat, idle, grown, steady, read, whole)


def _share(real: Hub, seconds: float) -> float:
    cpu, began = cpu_seconds(real.pid), time.perf_counter()
    time.sleep(seconds)
    return (cpu_seconds(real.pid) - cpu) / (time.perf_counter() - began)


def _grow(real: Hub, managers: Partner, count: int) -> Grown:
    cpu = [cpu_seconds(real.pid)]
    managers.ask(do="tokens", count=count)
    cpu.append(cpu_seconds(real.pid))
    joined = managers.ask(do="join")
    cpu.append(cpu_seconds(real.pid))
    managers.ask(do="connect")
    cpu.append(cpu_seconds(real.pid))
    token, join, connect = ((after - before) / count for before, after in itertools.pairwise(cpu))
    return Grown(count, joined["seconds"], token, join, connect)


def _listen(real: Hub, managers: Partner, clusters: int, seconds: float, readers: Partner | None = None) -> Steady:
    with _Flushes(real.folder / "data" / "hub" / "hansa.db") as flushes:
        cpu, began = cpu_seconds(real.pid), time.perf_counter()
        managers.order(do="listen", seconds=seconds)
        if readers is not None:
            readers.order(seconds=seconds, clusters=clusters)
        heard = managers.answer()
        told: dict[str, Any] = readers.answer() if readers is not None else {"took": {}, "failed": 0}
        share = (cpu_seconds(real.pid) - cpu) / (time.perf_counter() - began)
    return Steady(
        clusters=clusters,
        share=share,
        beats=len(heard["answers"]),
        answers=heard["answers"],
        lags=heard["lags"],
        missed=heard["skipped"] + heard["failed"] + heard["lost"],
        flushes=flushes.longest,
        memory=_memory(real.pid),
        reads=told["took"],
        failed_reads=told["failed"],
    )


class _Flushes:
    """Looks at the database from outside: how long ago was what has just appeared there heard?"""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.longest: list[float] = []

    def __enter__(self) -> "_Flushes":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        query = "select max(version), min(seen) from hub_sightings where version > ?"
        with sqlite3.connect(f"file:{self._file}?mode=ro", uri=True) as database:
            known = database.execute("select coalesce(max(version), 0) from hub_sightings").fetchone()[0]
            while not self._over.wait(_LOOK_EVERY):
                newest, heard = database.execute(query, (known,)).fetchone()
                if newest is not None:
                    self.longest.append(time.time() - heard)
                    known = newest
        database.close()


def _memory(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024.0 * int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


def _answers(real: Hub, steady: Steady, sizes: Sizes) -> dict[str, float]:
    """Processor seconds for one answer of each kind, one after the other, without what heartbeats take meanwhile."""
    admin = {"Authorization": "Basic " + b64encode(f"{ADMIN}:{real.password}".encode()).decode()}
    paths = {
        ONE: "/v1/clusters/cluster-00000",
        LIST: "/v1/clusters",
        INVENTORY: "/v1/inventory",
        "nodes": "/v1/inventory?nodes=true",
        STATUS: "/v1/federation/status",
    }
    variants = [Variant(name, "GET", path, 200, admin) for name, path in paths.items()]
    told = take_turns(real.port, real.pid, variants, connections=1, rounds=sizes.rounds, seconds=sizes.slice)
    return {
        name: statistics.median((one.cpu - steady.share * one.seconds) / one.answers for one in slices)
        for name, slices in told.items()
    }


def _part(
    every: float,
    idle: float,
    grown: Sequence[Grown],
    steady: Sequence[Steady],
    read: Steady,
    whole: Mapping[str, float],
) -> Part:
    least, most = steady[0], steady[-1]
    size = most.clusters
    enough = size >= 5000  # aims are about a large federation
    heartbeats, each = most.share - idle, [(one.share - idle) / one.clusters for one in steady]
    growth = each[-1] / max(each[0], 1e-9)
    apiece = (most.memory - least.memory) / (size - least.clusters)
    reads = [one for kind in read.reads.values() for one in kind]
    figures = [
        *(
            Figure(
                f"join of {one.clusters} clusters",
                f"{one.clusters / one.joining:.0f} a second",
                means=f"{one.cpu_join * 1000:.1f} ms of processor time each; before it {one.cpu_token * 1000:.1f} ms "
                f"for its token, after it {one.cpu_connect * 1000:.1f} ms for two connections and its first report",
            )
            for one in grown
        ),
        Figure(
            f"heartbeats of {size} clusters every {every:g} s",
            f"{heartbeats:.3f} of one processor",
            "less than 0.25" if enough else "",
            heartbeats < 0.25 if enough else None,
            f"{heartbeats * every / size * 1e6:.0f} µs each of {most.beats}: TLS, answer, watches, judging and writing "
            f"down; idle, the hub takes {idle:.3f}",
        ),
        Figure(
            f"processor time for each cluster, {size} against {least.clusters}",
            f"{growth:.2f}x",
            "linear or better" if enough else "",
            growth <= 1.1 if enough else None,
            ", ".join(f"{one.clusters}: {cost * 1e6:.0f} µs/s" for one, cost in zip(steady, each, strict=True)),
        ),
        Figure("heartbeat to answer", _times(most.answers), means="as managers see it"),
        Figure("heartbeat due to answer", _times(most.lags), means="the simulation's own delay is in it"),
        Figure(
            "heartbeats missed", f"{most.missed + read.missed}", "none", not most.missed + read.missed, "in both runs"
        ),
        Figure("heard to written down", _times(most.flushes), means="the oldest of each flush, every 0.5 s"),
        Figure(
            f"reads of {_CLIENTS} clients meanwhile",
            _times(reads),
            "99 % within 50 ms" if enough else "",
            percentile(reads, 0.99) < 0.05 if enough else None,
            f"{len(reads)} answers, {read.failed_reads} failed; 7 of 10 ask for one cluster, 1 for all, 1 for the "
            f"inventory, 1 for the status; the hub takes {read.share:.3f} of one processor then",
        ),
        *(Figure(f"of these: {kind}", _times(took)) for kind, took in read.reads.items()),
        Figure("heartbeat to answer, with readers", _times(read.answers)),
        Figure(
            f"list of {size} clusters",
            f"{whole[LIST] * 1000:.1f} ms",
            "less than 60 ms" if enough else "",
            whole[LIST] < 0.06 if enough else None,
            "processor time, while clusters report",
        ),
        Figure("the whole inventory", f"{whole[INVENTORY] * 1000:.1f} ms", means="processor time, the same way"),
        Figure(f"the same with {size * NODES} nodes", f"{whole['nodes'] * 1000:.1f} ms"),
        Figure("the federation's status", f"{whole[STATUS] * 1000:.1f} ms"),
        Figure("one cluster", f"{whole[ONE] * 1000:.2f} ms"),
        Figure(
            "memory for each cluster",
            f"{apiece / 1024:.0f} KiB",
            means=f"{least.memory / 2**20:.0f} MiB with {least.clusters}, {most.memory / 2**20:.0f} MiB with {size}; "
            "two TLS connections are in it",
        ),
    ]
    return Part(
        "A hub of many clusters",
        "The real hub on SQLite, and simulated managers over real HTTPS with mutual TLS: each joins by a token, keeps "
        f"two connections, reports {NODES} nodes every {every:g} s (totals and nodes change each time) and watches "
        f"for what it should know. Clusters: {', '.join(str(one.clusters) for one in steady)}. Times of answers are "
        "medians, with what 99 of 100 keep within in brackets; all processes share the machine.",
        tuple(figures),
    )


def _times(seconds: Sequence[float]) -> str:
    if not seconds:
        return "none"
    return f"{statistics.median(seconds) * 1000:.1f} ms (99 %: {percentile(seconds, 0.99) * 1000:.1f} ms)"
