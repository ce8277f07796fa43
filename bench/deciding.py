"""How long does it take to decide where a job goes, and what does a member that hangs cost?"""

import asyncio
import contextlib
import gc
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

import msgspec

from bench.far import ONE_WAY, far_servers
from bench.figures import Figure, Part, Sizes, percentile, spread
from hansa.drivers.oscar import OscarPeers
from hansa.kernel.clock import SystemClock
from hansa.kernel.federation import FederationSettings, KnownCluster
from hansa.services import Delegator, Job, Record, Room, Service, Status
from hansa.services.delegation import Prober, Receipt
from hansa.services.replicas import MemberKeys

_MEMBERS = 16
_OUT_OF = 300  # decisions from what is known, for each cold one


def decisions(sizes: Sizes) -> Part:
    with _members() as (good, one_hung):
        told = asyncio.run(_measure(good, one_hung, sizes.decisions))
    cold = [hung / none for hung, none in zip(told["hung"], told["none"], strict=True)]
    cached = [hung / none for hung, none in zip(told["hung, work"], told["none, work"], strict=True)]
    worst = percentile(told["hung, known"], 0.95) * 1000
    return Part(
        "Deciding where a job goes",
        f"Policy load-based over {_MEMBERS} members whose status takes {2 * ONE_WAY * 1000:.0f} ms, all well or one of "
        f"them hung (it takes the question and never answers; limit {FederationSettings().probe_timeout:g} s). "
        f"{sizes.decisions} rounds in turns: one decision with nothing known, then {_OUT_OF} from what is known.",
        (
            Figure(
                "nothing known: one hung, against none",
                f"{spread(cold)}x",
                "within 10 %",
                statistics.median(cold) <= 1.1,
                "nearly all answers are enough; the last ones are not waited for",
            ),
            Figure("nothing known, none hung", _times(told["none"])),
            Figure("nothing known, one hung", _times(told["hung"])),
            Figure(
                "from what is known: one hung, against none",
                f"{spread(cached)}x",
                "within 10 %",
                statistics.median(cached) <= 1.1,
                "processor time; nobody is waited for",
            ),
            Figure(
                "from what is known, one hung",
                f"{statistics.median(told['hung, known']) * 1000:.2f} ms (95 %: {worst:.2f} ms)",
                "well under 5 ms",
                worst < 2.5,
            ),
        ),
    )


@contextlib.contextmanager
def _members() -> Iterator[tuple[dict[str, int], dict[str, int]]]:
    """Ports by cluster id: all well, and the same with one that hangs."""
    with far_servers(["status"] * _MEMBERS + ["hung"]) as ports:
        good = {f"far-{number}": port for number, port in enumerate(ports[:_MEMBERS])}
        yield good, {**good, "far-5": ports[-1]}


@dataclass(slots=True)
class _KeyHolders:
    """Everybody takes keys."""

    def known(self, cluster_id: str) -> bool:
        return True

    async def add(self, cluster_id: str) -> None:
        pass


@dataclass(slots=True)
class _NoReceipts:
    def get(self, job: str) -> Receipt | None:
        return None


@dataclass(slots=True)
class _Part:
    """As much of a manager's room as a decision needs."""

    peers: OscarPeers
    prober: Prober
    cluster_id: str = "bench"
    member_keys: MemberKeys = field(default_factory=lambda: MemberKeys(b"bench"))
    key_holders: _KeyHolders = field(default_factory=_KeyHolders)
    receipts: _NoReceipts = field(default_factory=_NoReceipts)


async def _measure(good: Mapping[str, int], one_hung: Mapping[str, int], rounds: int) -> dict[str, list[float]]:
    variants = {"none": (good, _open(good)), "hung": (one_hung, _open(one_hung))}
    told: dict[str, list[float]] = {name: [] for name in ("none", "hung", "none, work", "hung, work", "hung, known")}
    gc.disable()  # a pause for it would hit the one or the other
    for turn in range(rounds + 1):
        for name, (ports, peers) in variants.items():
            cold, known, work = await _decide(list(ports), peers)
            if turn:  # the first one warms up
                told[name].append(cold)
                told.setdefault(f"{name}, known", []).append(known)
                told[f"{name}, work"].append(work)
        gc.collect()
    gc.enable()
    for _, peers in variants.values():
        await peers.close()
    return told


def _open(ports: Mapping[str, int]) -> OscarPeers:
    clusters = {ident: KnownCluster(endpoint=f"http://127.0.0.1:{port}") for ident, port in ports.items()}
    return OscarPeers(FederationSettings(clusters=clusters), own_id="bench")


async def _decide(clusters: list[str], peers: OscarPeers) -> tuple[float, float, float]:
    """Seconds for a decision with nothing known, and for one of those that follow, in all and of the processor."""
    given = FederationSettings()
    prober = Prober(SystemClock(), ttl=given.probe_ttl, timeout=given.probe_timeout)
    room = cast(Room, _Part(peers, prober))
    delegator = Delegator(room, threshold=10, patience=20, hop_limit=4, formula="free-cpu")
    record, job = _service(clusters), Job("bench-1", "bench", "bench", Status.PENDING, 0.0, 200, 64 << 20, b"x")
    try:
        began = time.perf_counter()
        ranking = await delegator.decide(record, job)
        cold = time.perf_counter() - began
        assert len(ranking.order) >= _MEMBERS - 2, ranking
        began, work = time.perf_counter(), time.process_time()
        for _ in range(_OUT_OF):
            await delegator.decide(record, job)
            await asyncio.sleep(0)
        return cold, (time.perf_counter() - began) / _OUT_OF, (time.process_time() - work) / _OUT_OF
    finally:
        await prober.close()


def _service(clusters: list[str]) -> Record:
    members = [{"type": "oscar", "cluster_id": ident, "service_name": "bench"} for ident in clusters]
    federation = {"topology": "star", "delegation": "load-based", "members": members}
    service = msgspec.convert({"name": "bench", "cluster_id": "bench", "federation": federation}, Service)
    return Record(service, 1, "ready", False, (), 0.0, 0.0)


def _times(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1000:.1f} ms"
