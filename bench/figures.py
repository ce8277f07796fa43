"""What a suite reports, and how it is printed and written down."""

import os
import platform
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is done; figures of small runs say little, but come soon."""

    services: int
    """In the listing."""
    rounds: int
    """How often the variants of a load take turns."""
    slice: float
    """Seconds that one variant is under load in one round."""
    starts: int
    """Jobs and uploads whose way to the script's first line is timed."""
    federated: int
    """Creates over each number of members."""
    decisions: int
    """Rounds of decisions where a job goes."""
    clusters: tuple[int, ...]
    """Of a hub: it is measured at each of these numbers."""
    heartbeat: float
    """Seconds between two reports of each."""
    steady: float
    """Seconds it is listened to at each."""
    follow: tuple[float, ...]
    """Seconds between two files of a standby: the hub is lost once with each."""
    kubernetes_jobs: int
    """One at a time in Kubernetes."""
    burst: int
    """Jobs at once in Kubernetes."""
    finished: int
    """Jobs that a manager remembers."""


FULL = Sizes(
    services=1000,
    rounds=9,
    slice=1.0,
    starts=60,
    federated=15,
    decisions=31,
    clusters=(100, 1000, 5000),
    heartbeat=10,
    steady=30,
    follow=(1, 5, 30),
    kubernetes_jobs=20,
    burst=200,
    finished=5000,
)
QUICK = Sizes(
    services=200,
    rounds=3,
    slice=0.5,
    starts=12,
    federated=4,
    decisions=5,
    clusters=(50, 200),
    heartbeat=2,
    steady=4,
    follow=(1, 5),
    kubernetes_jobs=5,
    burst=20,
    finished=500,
)
TINY = Sizes(
    services=5,
    rounds=1,
    slice=0.05,
    starts=2,
    federated=1,
    decisions=1,
    clusters=(5, 20),
    heartbeat=0.5,
    steady=1,
    follow=(1,),
    kubernetes_jobs=1,
    burst=3,
    finished=60,
)


@dataclass(frozen=True, slots=True)
class Figure:
    what: str
    value: str
    aim: str = ""
    met: bool | None = None  # None: shown for its own sake
    means: str = ""

    @property
    def verdict(self) -> str:
        return {True: "met", False: "not met", None: ""}[self.met]


@dataclass(frozen=True, slots=True)
class Part:
    """One suite's figures under a heading."""

    title: str
    method: str
    figures: tuple[Figure, ...]


def machine() -> str:
    memory = int(re.findall(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[0]) / 2**20
    return f"{os.cpu_count()} processors, {memory:.0f} GiB, Linux {platform.release().split('-')[0]}"


def load() -> str:
    return ", ".join(f"{one:.1f}" for one in os.getloadavg())


def percentile(values: Sequence[float], share: float) -> float:
    """0.95 of the values are not above what this gives; the largest one when there are few."""
    return sorted(values)[min(len(values) - 1, round(share * len(values)))]


def spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def as_text(parts: Sequence[Part]) -> str:
    lines = []
    for part in parts:
        lines += ["", part.title]
        width = max(len(figure.what) for figure in part.figures)
        for figure in part.figures:
            judged = f"  [aim {figure.aim}: {figure.verdict}]" if figure.aim else ""
            lines.append(f"  {figure.what:<{width}}  {figure.value}{judged}")
    return "\n".join(lines)


def as_page(parts: Sequence[Part], loads: tuple[str, str]) -> str:
    """`docs/benchmarks.md`."""
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`. Machines differ and are rarely quiet, so what counts is the ratio of two things",
        "measured in turns within one run; absolute figures are for orientation. Medians; in brackets the smallest",
        "and the largest round.",
        "",
        f"Machine: {machine()}. Load average over 1, 5 and 15 minutes: {loads[0]} before the run, {loads[1]} after it.",
        "What is above the run's own share was other work on the same machine.",
    ]
    for part in parts:
        lines += ["", f"## {part.title}", "", part.method, ""]
        lines += ["| what | measured | aim | | what it means |", "|---|---|---|---|---|"]
        lines += [
            f"| {figure.what} | {figure.value} | {figure.aim} | {figure.verdict} | {figure.means} |"
            for figure in part.figures
        ]
    return "\n".join(lines) + "\n"
