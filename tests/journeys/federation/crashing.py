"""A federation in which a manager dies at a chosen write, for the files `test_every_write_*`.

lubeck coordinates, visby is a member; both keep their state in PostgreSQL, behind a `WriteGate`. riga is the healthy
third. A `Moment` is the commit at which one of them is killed: before it, and what it would have written is lost; or
after it, and nobody heard that it was written. What is done between two commits is thereby cut off on both sides.
"""

import concurrent.futures
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from journeys.federation.stories import eventually
from real.federation import Federation, federation
from real.identity_provider import IdentityProvider
from real.postgres import Server
from real.write_gate import WriteGate

if TYPE_CHECKING:
    from real.object_store import RunningStore

CLUSTERS = ("lubeck", "visby", "riga")
Later = concurrent.futures.Future[httpx.Response]
# Exchanges of tokens come when one has grown old, in any story; the create's own are in its list.
_AT_ANY_TIME = ("insert lineages", "update lineages", "insert audit")


@dataclass(frozen=True, slots=True)
class Moment:
    """The `nth` commit of a story that does `step`."""

    step: str
    kept: bool
    nth: int = 1

    def __str__(self) -> str:
        which = "" if self.nth == 1 else f" #{self.nth}"
        return f"{'after' if self.kept else 'before'} {self.step}{which}"


def before(step: str, nth: int = 1) -> Moment:
    return Moment(step, kept=False, nth=nth)


def after(step: str, nth: int = 1) -> Moment:
    return Moment(step, kept=True, nth=nth)


def at(moments: Sequence[Moment]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("moment", moments, ids=str)


@dataclass(slots=True)
class Scene:
    hansa: Federation
    gates: Mapping[str, WriteGate]
    dead: str = ""
    _threads: concurrent.futures.ThreadPoolExecutor = field(
        default_factory=lambda: concurrent.futures.ThreadPoolExecutor(4)
    )

    def alice(self, cluster: str = "lubeck") -> httpx.Client:
        return self.hansa.user("alice", cluster)

    def token(self) -> str:
        return self.hansa.refresh_token("alice")

    def send(self, method: str, path: str, **more: Any) -> Later:
        """A request of alice's to lubeck whose answer may never come, because whoever should give it is killed."""
        client = self.alice()

        def ask() -> httpx.Response:
            with httpx.Client(base_url=client.base_url, auth=client.auth, timeout=60, trust_env=False) as own:
                return own.request(method, path, **more)

        return self._threads.submit(ask)

    def dies(self, victim: str, moment: Moment, act: Callable[[], Later]) -> Later:
        """Kills the victim at that moment of what `act` begins, and starts it again."""
        gate, cluster = self.gates[victim], self.hansa[victim]
        gate.arm(moment.step, moment.nth)
        answer = act()
        gate.reached()
        cluster.kill()
        self.dead = victim
        gate.settle(kept=moment.kept)
        self.revive()
        return answer

    def revive(self) -> None:
        """Whoever is dead is started again, on the same folder and port."""
        if self.dead:
            self.hansa[self.dead].start()
            self.dead = ""

    def assert_listed(self, victim: str, moments: Sequence[Moment]) -> None:
        """Everything the victim wrote since the test began is among these moments, and the other way round."""
        done = {part for step in self.gates[victim].steps() for part in step.split(" + ")}
        listed = {part for moment in moments for part in moment.step.split(" + ")}
        unlisted = {part for part in done - listed if not part.startswith(_AT_ANY_TIME)}
        assert not unlisted, f"{victim} writes what no moment kills it at: {unlisted}"
        assert listed <= done, f"{victim} did not write all of it"

    def written(self, cluster: str, query: str, *given: str) -> list[tuple[Any, ...]]:
        return self.gates[cluster].rows(query, *given)

    def await_closed(self, subject: str) -> None:
        """No operation on this service is still open."""
        query = "select id, kind, state from operations where subject = %s and state in ('applying', 'undoing')"
        eventually(lambda: not self.written("lubeck", query, subject), what="the end of every operation")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        for gate in self.gates.values():
            gate.close()


@contextlib.contextmanager
def crashing_federation(
    provider: IdentityProvider,
    server: Server,
    store: "RunningStore",
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> Iterator[Scene]:
    """All share one object store, which outlives them: a restart need not wait for it."""
    shared = {
        "storage.kind": "s3",
        "storage.endpoint": store.address.endpoint,
        "storage.access_key": store.keys.access_key,
        "storage.secret_key": store.keys.secret_key,
    }
    with contextlib.ExitStack() as undo:
        databases = {name: undo.enter_context(server.database()) for name in ("lubeck", "visby")}
        given: dict[str, dict[str, Any]] = {name: dict(shared) for name in CLUSTERS}
        for name, database in databases.items():
            given[name]["database.url"] = database.url
        for name, more in (settings or {}).items():
            given[name] |= more
        # tokens that are not replaced: what a crash costs with others is told in docs/decisions/0003
        running = federation(*CLUSTERS, provider=provider, realm="steady", settings=given)
        hansa = undo.enter_context(running)
        gates = {name: WriteGate(database.conninfo) for name, database in databases.items()}
        scene = Scene(hansa, gates)
        undo.callback(scene.close)
        for name in CLUSTERS:
            scene.alice(name)
        for gate in gates.values():
            gate.install()
        yield scene


@contextlib.contextmanager
def undisturbed(scene: Scene) -> Iterator[Scene]:
    """For one test: writes are counted from here on, and everybody is alive and free afterwards."""
    for gate in scene.gates.values():
        gate.listen()
    try:
        yield scene
    finally:
        for gate in scene.gates.values():
            gate.open()
        scene.revive()
