"""Which member should get a job, in which order are they asked, and why not the others? Four policies, all pure.

A policy sees what was probed of each member and gives every one of them a place or a refusal. Lower priority numbers
go first, as in OSCAR; a member that cannot hold the job is never asked, whatever its score.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hansa.resources import Needs
from hansa.services.peers import PeerHistory, PeerStatus
from hansa.services.service import Member

TOPSIS_WEIGHTS = {"latency": 1, "nodes": 8, "free_memory": 18, "free_cpu": 65, "mean_seconds": 2, "pending": 6}
_COSTS = frozenset({"latency", "mean_seconds", "pending"})
_NO_MEAN = 1e6  # seconds, for a member that never finished a job of this service
_NOTHING = Needs(0, 0)
_MOST_FREE = 32_000  # millicores that map to the best priority


@dataclass(frozen=True, slots=True)
class Candidate:
    """A member and what is known of it now."""

    member: Member
    status: PeerStatus | None = None
    trouble: str = ""  # why it is not to be asked at all
    history: PeerHistory | None = None
    in_flight: Needs = _NOTHING  # what we handed it since its status was taken


@dataclass(frozen=True, slots=True)
class Ranking:
    """Every member is in `order` or has a reason in `refused`."""

    order: tuple[Member, ...]
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)


def rank(
    policy: str,
    candidates: Sequence[Candidate],
    needs: Needs,
    *,
    weights: Mapping[str, float] | None = None,
    formula: str = "free-cpu",
    chance: random.Random | None = None,
) -> Ranking:
    """The order in which members are offered a job of this size."""
    refused: dict[str, str] = {}
    fitting: list[Candidate] = []
    for one in candidates:
        why = one.trouble or _misfit(one, needs, by_status=policy not in ("", "static"))
        if why:
            refused[one.member.key] = why
        else:
            fitting.append(one)
    weights = weights or {}
    match policy:
        case "" | "static":
            scores = {one.member.key: {"priority": float(one.member.priority)} for one in fitting}
        case "random":
            scores = _random(fitting, weights, chance or random.SystemRandom())
        case "load-based":
            scores = {one.member.key: {"priority": _load(one, weights, formula)} for one in fitting}
        case "topsis":
            scores = _topsis(fitting, weights)
        case _:
            raise ValueError(f"no policy {policy!r}")
    order = sorted(fitting, key=lambda one: scores[one.member.key]["priority"])  # stable: ties keep the user's order
    return Ranking(tuple(one.member for one in order), scores, refused)


def behind_others(ranking: Ranking, dropped: Mapping[str, int]) -> Ranking:
    """Those that had this job and lost it are asked after those that did not, the oftener the later: whoever takes a
    job and then tells nothing of it must not be offered it for ever while others could run it."""
    order = sorted(ranking.order, key=lambda member: dropped.get(member.key, 0))
    return replace(ranking, order=tuple(order))


def _misfit(one: Candidate, needs: Needs, *, by_status: bool) -> str:
    """Endpoint members are never probed, and static asks without looking; the others must have a node that fits."""
    if not by_status or one.member.type.lower() == "endpoint":
        return ""
    status = one.status
    if status is None:
        return "its status is not known"
    for node in status.nodes:
        if node.cpu - one.in_flight.cpu >= needs.cpu and node.memory - one.in_flight.memory >= needs.memory:
            return ""
    if not status.nodes:
        return "it reports no node"
    best_cpu = max(node.cpu for node in status.nodes) - one.in_flight.cpu
    best_memory = max(node.memory for node in status.nodes) - one.in_flight.memory
    if best_cpu < needs.cpu:
        return f"cpu: needs {needs.cpu}m on one node, the largest has {max(0, best_cpu)}m"
    if best_memory < needs.memory:
        return f"memory: needs {needs.memory} bytes on one node, the largest has {max(0, best_memory)}"
    return "no single node has both the cpu and the memory"


def _random(
    fitting: Sequence[Candidate], weights: Mapping[str, float], chance: random.Random
) -> dict[str, dict[str, float]]:
    """A uniform order; with weights by cluster id, likelier ones come first more often (Efraimidis and Spirakis)."""
    scores: dict[str, dict[str, float]] = {}
    for one in fitting:
        weight = max(0.0, weights.get(one.member.key, weights.get(one.member.cluster_id, 1.0)))
        drawn = chance.random()
        scores[one.member.key] = {"priority": 100.0 * (1.0 - drawn ** (1.0 / weight)) if weight else 101.0}
    return scores


def _load(one: Candidate, weights: Mapping[str, float], formula: str) -> float:
    status = one.status
    if status is None:
        return 100.0  # an endpoint tells nothing of its load: asked after all that do
    free_cpu = max(0, status.free_cpu - one.in_flight.cpu)
    if formula == "free-cpu" and not weights:
        return float(min(100, max(0, 100 - math.trunc(100 * free_cpu / _MOST_FREE))))
    free_memory = max(0, status.free_memory - one.in_flight.memory)
    cpu_share = _share(free_cpu, status.capacity_cpu)
    memory_share = _share(free_memory, status.capacity_memory)
    cpu_weight, memory_weight = weights.get("cpu", 1.0), weights.get("memory", 1.0)
    total = cpu_weight + memory_weight or 1.0
    mean = cpu_share ** (cpu_weight / total) * memory_share ** (memory_weight / total)
    return float(100 - math.floor(100 * mean + 0.5))


def _share(free: int, capacity: int) -> float:
    return min(1.0, max(0.0, free / capacity)) if capacity > 0 else 0.0


def _topsis(fitting: Sequence[Candidate], weights: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Closeness to the ideal member over six criteria; 100 minus its percentage is the priority."""
    rows = [_criteria(one) for one in fitting]
    names = list(TOPSIS_WEIGHTS)
    weighted: dict[str, list[float]] = {}
    for name in names:
        column = [row[name] for row in rows]
        norm = math.sqrt(sum(value * value for value in column))
        weight = max(0.0, weights.get(name, TOPSIS_WEIGHTS[name]))
        weighted[name] = [value / norm * weight if norm else 0.0 for value in column]
    best: Callable[[str], float] = lambda name: (min if name in _COSTS else max)(weighted[name])  # noqa: E731
    worst: Callable[[str], float] = lambda name: (max if name in _COSTS else min)(weighted[name])  # noqa: E731
    scores: dict[str, dict[str, float]] = {}
    for index, one in enumerate(fitting):
        to_best = math.sqrt(sum((weighted[name][index] - best(name)) ** 2 for name in names))
        to_worst = math.sqrt(sum((weighted[name][index] - worst(name)) ** 2 for name in names))
        closeness = to_worst / (to_best + to_worst) if to_best + to_worst else 0.0
        scores[one.member.key] = {"priority": 100.0 - 100.0 * closeness, "closeness": closeness, **rows[index]}
    return scores


def _criteria(one: Candidate) -> dict[str, float]:
    status, history = one.status, one.history
    return {
        "latency": status.seconds if status else 20.0,
        "nodes": float(status.nodes_count) if status else 0.0,
        "free_memory": float(max(0, status.free_memory - one.in_flight.memory)) if status else 0.0,
        "free_cpu": float(max(0, status.free_cpu - one.in_flight.cpu)) if status else 0.0,
        "mean_seconds": history.mean_seconds if history and history.mean_seconds is not None else _NO_MEAN,
        "pending": (history.pending if history else 0) + 0.1,
    }
