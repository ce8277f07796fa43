"""What does a federation cost: a create over many members, and a job that runs elsewhere?"""

import contextlib
import statistics
import time
from collections.abc import Iterator, Mapping
from typing import Any

from bench.far import ONE_WAY, far_servers
from bench.figures import Figure, Part, Sizes, spread
from real.manager import ADMIN, Manager, free_port, running_manager

MEMBERS = (1, 4, 16)
_HOSTS = 2  # managers behind the members; several cluster ids share one
_PATIENCE = 60.0


def creates(sizes: Sizes) -> Part:
    with _far_members() as (manager, clusters):
        told: dict[int, list[float]] = {count: [] for count in MEMBERS}
        for turn in range(sizes.federated + 1):
            for count in MEMBERS:
                seconds = _create(manager, f"bench-{turn}-{count}", dict(list(clusters.items())[:count]))
                if turn:  # the first one warms up
                    told[count].append(seconds)
    many = [sixteen / one for sixteen, one in zip(told[MEMBERS[-1]], told[1], strict=True)]
    median = statistics.median(many)
    return Part(
        "Federated create",
        f"`POST /system/services` with members at managers {2 * ONE_WAY * 1000:.0f} ms away (each direction of "
        f"a link is {ONE_WAY * 1000:.0f} ms late, and opening a connection takes a round trip too), until the answer: "
        f"all replicas are in place. {sizes.federated} rounds in turns; the members' {MEMBERS[-1]} cluster ids are "
        f"served by {_HOSTS} managers on the same machine, so their work is in it.",
        (
            Figure(
                f"{MEMBERS[-1]} members, against one",
                f"{spread(many)}x",
                "at most 2x",
                median <= 2,
                "members are asked and served at the same time; what is left is work, not waiting",
            ),
            *(Figure(_members(count), _times(told[count])) for count in MEMBERS),
        ),
    )


def _members(count: int) -> str:
    return "one member" if count == 1 else f"{count} members"


@contextlib.contextmanager
def _far_members() -> Iterator[tuple[Manager, Mapping[str, Any]]]:
    """A coordinator, and the `clusters` of a definition that has far members."""
    with contextlib.ExitStack() as undo:
        port = free_port()
        origin = {"federation.clusters": {"bench": {"endpoint": f"http://127.0.0.1:{port}"}}}
        hosts = [undo.enter_context(running_manager(origin)) for _ in range(_HOSTS)]
        serving = [hosts[number % _HOSTS] for number in range(MEMBERS[-1])]
        ports = undo.enter_context(far_servers([host.port for host in serving]))
        clusters = {
            f"far-{number}": {
                "endpoint": f"http://127.0.0.1:{port}",
                "auth_user": ADMIN,
                "auth_password": host.password,
            }
            for number, (port, host) in enumerate(zip(ports, serving, strict=True))
        }
        known = {ident: {"endpoint": one["endpoint"]} for ident, one in clusters.items()}
        own = {"cluster.id": "bench", "federation.clusters": known}
        yield undo.enter_context(running_manager(own, port=port)), clusters


def _create(manager: Manager, name: str, clusters: Mapping[str, Any]) -> float:
    members = [
        {"type": "oscar", "cluster_id": ident, "service_name": f"{name}-{ident}", "priority": 0} for ident in clusters
    ]
    definition = _definition(name, clusters, members, cluster_id="bench")
    began = time.perf_counter()
    answer = manager.admin.post("/system/services", json=definition)
    seconds = time.perf_counter() - began
    assert answer.status_code == 201, answer.text
    assert manager.admin.delete(f"/system/services/{name}").status_code == 204
    return seconds


def _definition(name: str, clusters: Mapping[str, Any], members: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "image": "debian",
        "cpu": "0.2",
        "memory": "64Mi",
        "script": "echo hello",
        "clusters": dict(clusters),
        "federation": {"topology": "star", "delegation": "static", "members": members},
        **more,
    }


def delegated(sizes: Sizes) -> Part:
    with _two_clusters() as (small, token_away, token_here):
        ways = {"away": ("bench-away", token_away), "here": ("bench-here", token_here)}
        told: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(sizes.starts + 1):
            for way, (service, token) in ways.items():
                seconds = _run_job(small, service, token)
                if turn:
                    told[way].append(seconds)
    above = [away - here for away, here in zip(told["away"], told["here"], strict=True)]
    return Part(
        "Delegated jobs",
        f"{sizes.starts} jobs of each kind in turns, one at a time, from `POST /job` until the origin shows the end: a "
        "job that runs where it was accepted, and one that only a member has room for (policy static, same machine).",
        (
            Figure(
                "delegated job, above a local job",
                f"{statistics.median(above) * 1000:+.0f} ms",
                means="decision, durable claim, hand-over, store keys, the right to publish, and news of the end",
            ),
            Figure("delegated job", _times(told["away"])),
            Figure("local job", _times(told["here"])),
        ),
    )


@contextlib.contextmanager
def _two_clusters() -> Iterator[tuple[Manager, str, str]]:
    """A manager too small for one of its services, and a member that has the room."""
    with contextlib.ExitStack() as undo:
        port = free_port()  # the member has to know where the origin will be
        roomy = undo.enter_context(
            running_manager({"cluster.id": "roomy", "federation.clusters": {"small": _at(port)}})
        )
        small = undo.enter_context(
            running_manager(
                {
                    "cluster.id": "small",
                    "jobs.cpu": "100m",
                    "federation.clusters": {"roomy": _at(roomy.port)},
                },
                port=port,
            )
        )
        clusters = {"roomy": {**_at(roomy.port), "auth_user": ADMIN, "auth_password": roomy.password}}
        members = [{"type": "oscar", "cluster_id": "roomy", "service_name": "bench-away", "priority": 0}]
        tokens = []
        for definition in (
            _definition("bench-away", clusters, members, cluster_id="small"),
            {**_definition("bench-here", {}, []), "cpu": "0.1", "federation": None},
        ):
            answer = small.admin.post("/system/services", json=definition)
            assert answer.status_code == 201, answer.text
            tokens.append(small.admin.get(f"/system/services/{definition['name']}").json()["token"])
        yield small, tokens[0], tokens[1]


def _at(port: int) -> dict[str, str]:
    return {"endpoint": f"http://127.0.0.1:{port}"}


def _run_job(manager: Manager, service: str, token: str) -> float:
    began = time.perf_counter()
    accepted = manager.bearer(token).post(f"/job/{service}", content=b"x")
    assert accepted.status_code == 201, accepted.text
    job = accepted.headers["x-hansa-job"]
    while time.perf_counter() - began < _PATIENCE:
        told = manager.admin.get(f"/v1/jobs/{job}").json()
        if told["status"] == "Succeeded":
            return time.perf_counter() - began
        assert told["status"] != "Failed", told
        time.sleep(0.02)  # not busily: asking takes from what is measured
    raise RuntimeError(f"job {job} did not end: {told}")


def _times(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1000:.0f} ms"
