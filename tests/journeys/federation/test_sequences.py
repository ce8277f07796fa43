"""Whatever is done to a federation, and whoever dies meanwhile: when all is quiet again, is it what was asked for?

Hypothesis draws sequences of creates, member changes, deletes, kills and restarts for three real managers. After each
sequence everybody is started, the loops that repair get a moment, and the clusters must show exactly what the model
says. `HANSA_TEST_FEDERATION_EXAMPLES` asks for more sequences than the few of every run.
"""

import concurrent.futures
import itertools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from journeys.federation.stories import eventually
from real.federation import Federation, cuttable_federation

pytestmark = pytest.mark.deep

EXAMPLES = int(os.environ.get("HANSA_TEST_FEDERATION_EXAMPLES", "2"))
STEPS = 18
SETTLING = 45.0
HOME, MEMBERS = "lubeck", ("visby", "riga")
SERVICES = ("one", "two")
FOREIGN = ("riga", "two")  # somebody's own service has this name there, in some sequences
MARK = "hansa/definition"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def three() -> Iterator[Federation]:
    quick = {"federation.repair_every": 0.5, "federation.call_timeout": 3, "log.level": "warning"}
    with cuttable_federation(HOME, *MEMBERS, common=quick) as running:
        yield running


@dataclass(slots=True)
class Wanted:
    """The coordinator as it should be."""

    topology: str
    script: str
    members: dict[str, dict[str, Any]] = field(default_factory=dict)  # by cluster/service

    def children(self, key: str) -> list[str]:
        return [other for other, one in self.members.items() if one.get("parent") == key]

    def listed_at(self, key: str, home: str) -> list[str]:
        """The members a worker lists."""
        if self.topology == "mesh":
            return [home, *(other for other in self.members if other != key)]
        return self.children(key) if self.topology == "tree" else []


class Sequences(RuleBasedStateMachine):
    """`hansa` is given by the test, for all sequences. What is possible at a step depends on how a kill came out, which
    Hypothesis cannot know: a step that makes no sense then does nothing, instead of having a precondition."""

    hansa: Federation

    def __init__(self) -> None:
        super().__init__()
        self.stem = f"seq{next(_numbers)}"
        self.wanted: Wanted | None = None
        self.left: set[str] = set()  # workers nobody was told to delete
        self.dead: set[str] = set()
        self.foreign = False
        self.scripts = itertools.count(1)

    @initialize(foreign=st.booleans())
    def begin(self, foreign: bool) -> None:
        self.foreign = foreign
        if foreign:
            cluster, service = FOREIGN
            made = {"name": self._name(service), "image": "debian", "script": "echo mine", "memory": "64Mi"}
            answer = self.hansa[cluster].admin.post("/system/services", json=made)
            assert answer.status_code == 201, answer.text

    # names

    @property
    def home(self) -> str:
        return f"{HOME}/{self.stem}"

    def _name(self, service: str) -> str:
        return f"{self.stem}-{service}"

    def _member(self, cluster: str, service: str, **more: Any) -> dict[str, Any]:
        return {"type": "oscar", "cluster_id": cluster, "service_name": self._name(service), "priority": 0, **more}

    def _is_foreign(self, key: str) -> bool:
        return self.foreign and key == f"{FOREIGN[0]}/{self._name(FOREIGN[1])}"

    @property
    def _coordinator_lives(self) -> bool:
        return HOME not in self.dead

    # what people do

    members = st.lists(
        st.tuples(st.sampled_from(MEMBERS), st.sampled_from(SERVICES)), min_size=1, max_size=3, unique=True
    )

    @rule(topology=st.sampled_from(["star", "mesh", "tree"]), chosen=members, kill_after=st.none() | st.floats(0, 0.3))
    def create(self, topology: str, chosen: list[tuple[str, str]], kill_after: float | None) -> None:
        if self.wanted is not None or not self._coordinator_lives:
            return
        fresh = Wanted(topology, f"echo {next(self.scripts)}")
        for cluster, service in chosen:
            one = self._member(cluster, service)
            if topology == "tree" and fresh.members:
                one["parent"] = next(iter(fresh.members))
            fresh.members[_key(one)] = one
        definition = {
            "name": self.stem,
            "cluster_id": HOME,
            "image": "debian",
            "memory": "64Mi",
            "script": fresh.script,
            "clusters": self.hansa.credentials(*MEMBERS),
            "federation": {"topology": topology, "delegation": "static", "members": list(fresh.members.values())},
        }
        answer = self._ask("POST", "/system/services", definition, kill_after)
        if answer is None:
            self._after_crash(None, fresh)
            return
        reachable = not any(cluster in self.dead for cluster, _ in chosen)
        possible = reachable and not any(self._is_foreign(key) for key in fresh.members)
        assert (answer.status_code == 201) == possible, answer.text
        if possible:
            self._have(fresh)

    @rule(
        verb=st.sampled_from(["add", "add", "update", "remove", "remove"]),
        cluster=st.sampled_from(MEMBERS),
        service=st.sampled_from(SERVICES),
        delete=st.booleans(),
        priority=st.integers(0, 3),
        kill_after=st.none() | st.none() | st.floats(0, 0.2),
    )
    def change(
        self, verb: str, cluster: str, service: str, delete: bool, priority: int, kill_after: float | None
    ) -> None:
        before = self.wanted
        if before is None or not self._coordinator_lives:
            return
        one = self._member(cluster, service, priority=priority)
        key = _key(one)
        after = Wanted(before.topology, before.script, dict(before.members))
        refused = False
        if verb == "add":
            if key not in after.members:
                if after.topology == "tree" and after.members:
                    one["parent"] = next(iter(after.members))
                after.members[key] = one
        elif verb == "update":
            refused = key not in before.members
            if not refused:
                after.members[key] = {**before.members[key], "priority": priority}
                one = after.members[key]
        else:
            refused = bool(before.children(key))
            after.members.pop(key, None)
        method = {"add": "POST", "update": "PUT", "remove": "DELETE"}[verb]
        body = {"members": [one], "delete": delete and verb == "remove"}
        answer = self._ask(method, f"/system/federation/{self.stem}", body, kill_after)
        if answer is None:
            self._after_crash(before, after)
        else:
            assert answer.status_code == (400 if refused else 200), answer.text
            if not refused:
                self._have(after)
        if verb == "remove" and key in before.members and (self.wanted is None or key not in self.wanted.members):
            if not delete and not self._is_foreign(key):
                self.left.add(key)
            elif answer is None:
                self.left.add(key + "?")  # killed before or after it wrote down that the worker has to go

    @rule(kill_after=st.none() | st.none() | st.floats(0, 0.2))
    def new_definition(self, kill_after: float | None) -> None:
        before = self.wanted
        if before is None or not self._coordinator_lives:
            return
        after = Wanted(before.topology, f"echo {next(self.scripts)}", before.members)
        definition = self.hansa[HOME].admin.get(f"/system/services/{self.stem}").json()
        answer = self._ask("PUT", "/system/services", {**definition, "script": after.script}, kill_after)
        if answer is None:
            self._after_crash(before, after)
        else:
            assert answer.status_code in (200, 204), answer.text
            self._have(after)

    @rule(keep=st.booleans())
    def delete(self, keep: bool) -> None:
        wanted = self.wanted
        if wanted is None or not self._coordinator_lives:
            return
        answer = self._ask("DELETE", f"/system/services/{self.stem}" + ("?workers=keep" if keep else ""), None, None)
        assert answer is not None
        assert answer.status_code in (200, 204), answer.text
        self.wanted = None
        if keep:  # those a dead member never got, it will not get any more
            self.left |= {f"{key}?" for key in wanted.members if not self._is_foreign(key)}

    @rule(number=st.integers(0, 9))
    def lose_a_worker(self, number: int) -> None:
        if self.wanted is None or not self.wanted.members:
            return
        key = list(self.wanted.members)[number % len(self.wanted.members)]
        cluster, _, service = key.partition("/")
        if cluster in self.dead or self._is_foreign(key):
            return
        note(f"its owner deletes {key}")
        assert self.hansa[cluster].admin.delete(f"/system/services/{service}").status_code in (204, 404)

    @rule(cluster=st.sampled_from([HOME, *MEMBERS]))
    def kill(self, cluster: str) -> None:
        if len(self.dead) < 2:
            self.hansa[cluster].kill()
            self.dead.add(cluster)

    @rule(number=st.integers(0, 2))
    def restart(self, number: int) -> None:
        if self.dead:
            self._start(sorted(self.dead)[number % len(self.dead)])

    def _start(self, cluster: str) -> None:
        self.hansa[cluster].start()
        self.dead.discard(cluster)

    def _have(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.left -= {mark for key in wanted.members for mark in (key, f"{key}?")}

    # asking, with or without a sudden end

    def _ask(self, method: str, path: str, body: Any, kill_after: float | None) -> httpx.Response | None:
        """None if the coordinator was killed before it answered."""
        admin = self.hansa[HOME].admin
        if kill_after is None:
            return admin.request(method, path, json=body)
        with concurrent.futures.ThreadPoolExecutor(1) as threads:
            asked = threads.submit(admin.request, method, path, json=body)
            concurrent.futures.wait([asked], timeout=kill_after)
            answered = asked.done()
            self.hansa[HOME].kill()
            self.dead.add(HOME)
            try:
                answer = asked.result(30)
            except httpx.TransportError:
                answer = None
            note(f"killed after {kill_after:.3f} s, {'answered' if answered else 'not answered'}")
        return answer

    def _after_crash(self, before: Wanted | None, after: Wanted) -> None:
        """All or nothing, and which of the two is for the coordinator to say."""
        self._start(HOME)

        def told() -> bool:
            found = self._told()
            if found is None or found == self._shown(after):
                return (found is None and before is None) or found is not None
            assert before is not None, found
            return found == self._shown(before)

        eventually(told, SETTLING, "either as before or as asked")
        if self._told() == self._shown(after):
            self._have(after)
        else:
            self.wanted = before

    def _told(self) -> tuple[str, str, dict[str, int]] | None:
        admin = self.hansa[HOME].admin
        service = admin.get(f"/system/services/{self.stem}")
        if service.status_code == 404:
            return None
        listed = admin.get(f"/system/federation/{self.stem}").json()
        members = {_key(one): one["priority"] for one in listed["members"] or []}
        return listed["topology"], service.json()["script"], members

    def _shown(self, wanted: Wanted | None) -> tuple[str, str, dict[str, int]] | None:
        if wanted is None:
            return None
        return wanted.topology, wanted.script, {key: one["priority"] for key, one in wanted.members.items()}

    # when all is quiet

    def teardown(self) -> None:
        for cluster in list(self.dead):
            self._start(cluster)
        try:
            eventually(lambda: self._differences() == [], SETTLING, "settled")
        except AssertionError:
            raise AssertionError(f"differences: {self._differences()}") from None
        finally:
            self._sweep()

    def _differences(self) -> list[str]:
        found: list[str] = []
        told = self._told()
        if told != self._shown(self.wanted):
            found.append(f"the coordinator shows {told}, expected {self._shown(self.wanted)}")
        present = self._present()
        expected = set(self.wanted.members) if self.wanted else set()
        if self.foreign:
            key = f"{FOREIGN[0]}/{self._name(FOREIGN[1])}"
            if present.get(key, {}).get("script") != "echo mine" or MARK in present[key]["annotations"]:
                found.append(f"somebody's own service was touched: {present.get(key)}")
            present.pop(key, None)
            expected.discard(key)
        maybe = {mark[:-1] for mark in self.left if mark.endswith("?")}
        found += [f"an orphan {key}" for key in present.keys() - expected - self.left - maybe]
        found += [f"no worker {key}" for key in expected - present.keys()]
        if self.wanted is not None:
            found += self._unlike(self.wanted, {key: present[key] for key in expected & present.keys()})
        return found

    def _unlike(self, wanted: Wanted, workers: dict[str, dict[str, Any]]) -> list[str]:
        found = []
        state = self.hansa[HOME].admin.get(f"/system/federation/{self.stem}?state=true").json().get("state", [])
        for one in state:
            if self._is_foreign(one["member"]):
                continue
            if not (one["reachable"] and one["in_sync"]):
                found.append(f"{one['member']} is not in sync: {one['trouble']}")
            elif workers.get(one["member"], {}).get("annotations", {}).get(MARK) != one["definition"]:
                found.append(f"{one['member']} runs another definition than is shown")
        for key, worker in workers.items():
            listed = [_key(one) for one in worker["federation"].get("members") or []]
            if listed != wanted.listed_at(key, self.home):
                found.append(f"{key} lists {listed}, expected {wanted.listed_at(key, self.home)}")
            if worker["script"] != wanted.script:
                found.append(f"{key} runs {worker['script']!r}, expected {wanted.script!r}")
        return found

    def _present(self) -> dict[str, dict[str, Any]]:
        """Every service of this sequence at the members, by cluster/service."""
        return {
            f"{cluster}/{one['name']}": one
            for cluster in MEMBERS
            for one in self.hansa[cluster].admin.get("/system/services").json()
            if one["name"].startswith(f"{self.stem}-")
        }

    def _sweep(self) -> None:
        self.hansa[HOME].admin.delete(f"/system/services/{self.stem}")
        for key in self._present():
            cluster, _, service = key.partition("/")
            self.hansa[cluster].admin.delete(f"/system/services/{service}")


def _key(member: dict[str, Any]) -> str:
    return f"{member['cluster_id']}/{member['service_name']}"


@pytest.mark.slow
@pytest.mark.timeout(180 + 120 * EXAMPLES)
def test_any_sequence_of_changes_and_deaths_ends_in_what_was_asked_for(three: Federation) -> None:
    began = time.monotonic()
    machine = type("GivenSequences", (Sequences,), {"hansa": three})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            phases=(Phase.generate,),  # to shrink what takes seconds for each step would take hours
            suppress_health_check=list(HealthCheck),
        ),
    )
    print(f"{EXAMPLES} sequences in {time.monotonic() - began:.0f} s")
