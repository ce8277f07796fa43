"""Real managers that belong to a real hub, and what stories about them share."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from real.federation import QUICK
from real.hub import Hub, a_hub
from real.manager import ADMIN, Manager, running_manager

T = TypeVar("T")
PATIENCE = 40.0
_PAUSE = 0.05
# What lubeck and visby can run: a job of the stories (0.2 cores) never fits at lubeck, and one at a time at visby.
CPU = {"lubeck": "100m", "visby": "250m"}


def eventually(ask: Callable[[], T | None], what: str, seconds: float = PATIENCE) -> T:
    """The first answer that counts as true; fails with the last one when the time is over."""
    end = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer:
            return answer
        assert time.monotonic() < end, f"still not {what} after {seconds:g} s: {answer!r}"
        time.sleep(_PAUSE)


@contextlib.contextmanager
def member(hub: Hub, ident: str, **settings: Any) -> Iterator[Manager]:
    """A manager that joins by its settings."""
    given = {
        **QUICK,
        "cluster.id": ident,
        "membership.hub": hub.members_url,
        "membership.token": hub.token(),
        "membership.link_probe_every": 0.2,
        **settings,
    }
    with running_manager(given) as manager:
        yield manager


def membership(manager: Manager) -> dict[str, Any]:
    answer = manager.admin.get("/v1/membership")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def caller_of(manager: Manager, service: str) -> httpx.Client:
    """Whoever holds the service's token."""
    return manager.bearer(manager.admin.get(f"/system/services/{service}").json()["token"])


@dataclass(frozen=True, slots=True)
class Sea:
    """A hub with two clusters, which know each other only through it."""

    hub: Hub
    lubeck: Manager
    visby: Manager

    def are_neighbours(self) -> bool:
        known = {one["id"] for manager in (self.lubeck, self.visby) for one in membership(manager)["neighbours"]}
        return known == {"lubeck", "visby"}

    def act(self, cluster: str, action: str) -> None:
        answer = self.hub.admin.post(f"/v1/clusters/{cluster}/{action}")
        assert answer.status_code == 200, answer.text

    def await_state(self, cluster: str, *states: str) -> dict[str, Any]:
        eventually(lambda: self.hub.state(cluster) in states, f"{cluster} {' or '.join(states)}")
        return self.hub.cluster(cluster)

    def federated(self, name: str, script: str = "echo done", **more: Any) -> dict[str, Any]:
        """A service at lubeck with a member at visby, which is named by its id and nothing else."""
        return {
            "name": name,
            "cluster_id": "lubeck",
            "cpu": "0.2",
            "memory": "64Mi",
            "image": "debian",
            "script": script,
            "clusters": {"visby": {"auth_user": ADMIN, "auth_password": self.visby.password}},
            "federation": {
                "topology": "star",
                "delegation": "static",
                "rescheduler_threshold": 2,
                "members": [{"type": "oscar", "cluster_id": "visby", "service_name": name}],
            },
            **more,
        }

    @contextlib.contextmanager
    def service(self, name: str, script: str = "echo done", **more: Any) -> Iterator[str]:
        answer = self.lubeck.admin.post("/system/services", json=self.federated(name, script, **more))
        assert answer.status_code == 201, answer.text
        try:
            yield name
        finally:
            assert self.lubeck.admin.delete(f"/system/services/{name}").status_code in (204, 404)

    def submit(self, service: str) -> str:
        answer = caller_of(self.lubeck, service).post(f"/job/{service}", content=b"a parcel")
        assert answer.status_code == 201, answer.text
        return str(answer.headers["x-hansa-job"])

    def story(self, job: str) -> dict[str, Any]:
        answer = self.lubeck.admin.get(f"/v1/jobs/{job}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def ended(self, job: str) -> dict[str, Any]:
        """Fails with how far it came."""
        with contextlib.suppress(AssertionError):
            eventually(lambda: self.story(job)["status"] in ("Succeeded", "Failed"), f"{job} ended")
        told = self.story(job)
        assert told["status"] in ("Succeeded", "Failed"), told
        return told


@contextlib.contextmanager
def a_sea() -> Iterator[Sea]:
    with contextlib.ExitStack() as undo:
        hub = undo.enter_context(a_hub())
        lubeck, visby = (
            undo.enter_context(member(hub, ident, **{"jobs.cpu": cpu, "membership.region": "baltic"}))
            for ident, cpu in CPU.items()
        )
        sea = Sea(hub, lubeck, visby)
        for ident in CPU:
            sea.await_state(ident, "ready")
        eventually(sea.are_neighbours, "neighbours")
        yield sea
