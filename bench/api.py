"""What do reads and submissions cost, compared with a request that does nothing in the same server?"""

import statistics
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor

from bench.figures import Figure, Part, Sizes, spread
from bench.load import Slice, Variant, take_turns
from real.manager import ADMIN, Manager, running_manager

_AT_ONCE = 32
_CLIENTS = 8


def reads(sizes: Sizes) -> Part:
    with running_manager() as manager:
        _fill(manager, sizes.services)
        admin = {"Authorization": "Basic " + b64encode(f"{ADMIN}:{manager.password}".encode()).decode()}
        variants = [
            Variant("noop", "GET", "/v1/noop", 204),
            Variant("one", "GET", "/system/services/bench-0", 200, admin),
            Variant("list", "GET", "/system/services", 200, admin),
        ]
        told = take_turns(manager.port, manager.pid, variants, connections=4, rounds=sizes.rounds, seconds=sizes.slice)
    one, many = _ratios(told["one"], told["noop"]), _ratios(told["list"], told["noop"])
    return Part(
        "Reading services",
        f"`GET /system/services/{{name}}` and the list of {sizes.services} services, as admin, against `GET /v1/noop`. "
        "Processor time of the server for each request, so that the client's share does not count.",
        (
            Figure(
                "one service, against a no-op",
                f"{spread(one)}x",
                "at most 3x",
                statistics.median(one) <= 3,
                "sign-in, the right to see it, and the answer itself",
            ),
            Figure(
                f"list of {sizes.services}, against a no-op",
                f"{spread(many)}x",
                means=f"{_micro(told['list']) / 1000:.1f} ms of processor time",
            ),
            Figure("no-op", f"{_micro(told['noop']):.0f} µs", means="routing, request id, log line, measurement"),
            Figure("one service", f"{_micro(told['one']):.0f} µs"),
        ),
    )


def submissions(sizes: Sizes) -> Part:
    with running_manager({"jobs.cpu": "1", "log.level": "info"}) as manager:
        definition = {"name": "bench-job", "image": "debian", "cpu": "1", "memory": "64Mi", "script": "sleep 1000"}
        assert manager.admin.post("/system/services", json=definition).status_code == 201
        token = manager.admin.get("/system/services/bench-job").json()["token"]
        # the first job takes all there is, so that the others are accepted and wait
        assert manager.bearer(token).post("/job/bench-job").status_code == 201
        variants = [
            Variant("noop", "POST", "/v1/noop", 204, body="x" * 100),
            Variant("job", "POST", "/job/bench-job", 201, {"Authorization": f"Bearer {token}"}, "x" * 100),
        ]
        told = take_turns(
            manager.port, manager.pid, variants, connections=_AT_ONCE, rounds=sizes.rounds, seconds=sizes.slice
        )
    rate = [noop.per_second / job.per_second for job, noop in zip(told["job"], told["noop"], strict=True)]
    accepted = statistics.median(one.per_second for one in told["job"])
    return Part(
        "Accepting jobs",
        f"`POST /job/{{service}}` with {_AT_ONCE} connections against `POST /v1/noop`, bodies of 100 bytes. "
        "An answered job is on disk (SQLite, full flush); those that come together are committed together.",
        (
            Figure("jobs accepted", f"{accepted:.0f} a second", means="durable when answered"),
            Figure(
                "no-ops for one accepted job",
                f"{spread(rate)}x",
                means="wall time, the flush to disk included",
            ),
            Figure(
                "processor time, against a no-op",
                f"{spread(_ratios(told['job'], told['noop']))}x",
                means=f"{_micro(told['job']):.0f} µs for a job, {_micro(told['noop']):.0f} µs for a no-op",
            ),
        ),
    )


def _fill(manager: Manager, count: int) -> None:
    admin = manager.admin

    def create(number: int) -> None:
        variables = {f"VARIABLE_{n}": "some value" for n in range(5)}
        definition = {
            "name": f"bench-{number}",
            "image": "debian",
            "script": "#!/bin/sh\necho hello\n" * 5,
            "environment": {"variables": variables},
        }
        answer = admin.post("/system/services", json=definition)
        assert answer.status_code == 201, answer.text

    with ThreadPoolExecutor(_CLIENTS) as pool:
        list(pool.map(create, range(count)))


def _ratios(many: list[Slice], few: list[Slice]) -> list[float]:
    """Round by round, so that what else the machine did in a round is in both."""
    return [one.cpu_each / other.cpu_each for one, other in zip(many, few, strict=True)]


def _micro(slices: list[Slice]) -> float:
    return statistics.median(one.cpu_each for one in slices) * 1e6
