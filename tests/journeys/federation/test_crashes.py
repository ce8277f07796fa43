"""A manager is killed at every step of a create, a member change and a hand-over: is it all or nothing afterwards?

Gates hold the step; several stories share one kill, since every restart takes seconds.
"""

import concurrent.futures
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import httpx
import pytest

from journeys.federation import stories
from journeys.federation.conftest import Deploy
from journeys.federation.stories import (
    absent,
    definition_of,
    ended,
    eventually,
    fresh,
    member,
    members_at,
    nothing_runs,
    outputs,
    story_of,
    submit,
)
from real.federation import Federation
from real.gate import Held

RUN = 'sleep 1; echo "$OSCAR_SERVICE_NAME" > "$TMP_OUTPUT_DIR/run.$(date +%s%N)"'
Later = concurrent.futures.Future[httpx.Response]
Send = Callable[..., Later]


@pytest.fixture
def send() -> Iterator[Send]:
    """A request whose answer may never come, because whoever should give it is killed."""
    threads = concurrent.futures.ThreadPoolExecutor(8)

    def start(client: httpx.Client, method: str, path: str, **more: Any) -> Later:
        def ask() -> httpx.Response:
            with httpx.Client(base_url=client.base_url, auth=client.auth, timeout=60, trust_env=False) as own:
                return own.request(method, path, **more)

        return threads.submit(ask)

    yield start
    threads.shutdown(wait=False, cancel_futures=True)


def of_alice(hansa: Federation, cluster: str) -> httpx.Client:
    return hansa.user("alice", cluster)


def killed(hansa: Federation, cluster: str, *held: Held) -> None:
    """Killed while these requests are held, which are lost then; started again."""
    for one in held:
        one.reached()
    hansa[cluster].kill()
    for one in held:
        one.release(lost=True)
    hansa[cluster].start()


def test_the_coordinator_dies_during_creates(hansa: Federation, alice: httpx.Client, send: Send) -> None:
    """One create is asking its member, one is about to make the worker, one has made it and was not told."""
    names = {"visby": fresh("asking"), "riga": fresh("making"), "tallinn": fresh("made")}
    whole = fresh("whole")
    stories.create(alice, stories.federated(whole, [member("visby", whole)], token=hansa.refresh_token("alice")))
    held = [
        hansa.gates["visby"].hold(f"GET /system/services/{names['visby']}-w"),
        hansa.gates["riga"].hold("POST /system/services"),
        hansa.gates["tallinn"].hold("POST /system/services", after=True),
    ]
    for cluster, name in names.items():
        definition = stories.federated(name, [member(cluster, f"{name}-w")], token=hansa.refresh_token("alice"))
        send(alice, "POST", "/system/services", json=definition)
    killed(hansa, "lubeck", *held)
    for cluster, name in names.items():
        there = of_alice(hansa, cluster)
        eventually(partial(absent, there, f"{name}-w"), what=f"{name} taken back at {cluster}")
        eventually(partial(absent, alice, name), what=f"{name} taken back")
    assert not absent(of_alice(hansa, "visby"), whole)  # what was answered stays
    buckets = [one["bucket_name"] for one in alice.get("/system/buckets").json() or []]
    assert not set(buckets) & set(names.values())
    for cluster, name in names.items():  # and nothing stands in the way of trying again
        definition = stories.federated(name, [member(cluster, f"{name}-w")], token=hansa.refresh_token("alice"))
        stories.create(alice, definition)
        assert alice.delete(f"/system/services/{name}").status_code == 204
    assert alice.delete(f"/system/services/{whole}").status_code == 204


def test_a_member_dies_during_creates(hansa: Federation, alice: httpx.Client, send: Send) -> None:
    making, made = fresh("making"), fresh("made")
    gate = hansa.gates["tallinn"]
    answers: list[Later] = []
    held: list[Held] = []
    for name, after in ((making, False), (made, True)):
        held.append(gate.hold("POST /system/services", after=after))
        members = [member("visby", f"{name}-v"), member("tallinn", f"{name}-t")]
        definition = stories.federated(name, members, token=hansa.refresh_token("alice"))
        answers.append(send(alice, "POST", "/system/services", json=definition))
        held[-1].reached()
    killed(hansa, "tallinn", *held)
    for name, answer in zip((making, made), answers, strict=True):
        told = answer.result(60)
        assert told.status_code == 502, told.text
        assert f"tallinn/{name}-t" in told.text
        assert absent(alice, name)
        for cluster in ("visby", "tallinn"):
            there = of_alice(hansa, cluster)
            eventually(partial(absent, there, f"{name}-{cluster[0]}"), what=f"{name} taken back at {cluster}")


def test_the_coordinator_dies_during_member_changes(
    hansa: Federation, alice: httpx.Client, deploy: Deploy, send: Send
) -> None:
    """Afterwards what is listed is deployed, and what is not listed is not."""
    adding, told, removing, leaving = fresh("adding"), fresh("told"), fresh("removing"), fresh("leaving")
    for name in (adding, told):
        deploy([member("visby", f"{name}-v")], name=name)
    for name in (removing, leaving):
        deploy([member("visby", f"{name}-v"), member("riga", f"{name}-r")], name=name)
    gates = hansa.gates
    held = [gates["riga"].hold("POST /system/services"), gates["tallinn"].hold("POST /system/services", after=True)]
    send(alice, "POST", f"/system/federation/{adding}", json={"members": [member("riga", f"{adding}-r")]})
    send(alice, "POST", f"/system/federation/{told}", json={"members": [member("tallinn", f"{told}-t")]})
    for one in held:
        one.reached()
    held.append(gates["riga"].hold(f"DELETE /system/services/{removing}-r"))
    gone = {"members": [member("riga", f"{removing}-r")], "delete": True}
    send(alice, "DELETE", f"/system/federation/{removing}", json=gone)
    held[-1].reached()
    held.append(gates["visby"].hold("PUT /system/services"))  # those who stay are told before the leaving one goes
    gone = {"members": [member("riga", f"{leaving}-r")], "delete": True}
    send(alice, "DELETE", f"/system/federation/{leaving}", json=gone)
    killed(hansa, "lubeck", *held)

    def consistent(name: str, cluster: str, worker: str) -> bool:
        listed = f"{cluster}/{worker}" in members_at(alice, name)
        return listed != absent(of_alice(hansa, cluster), worker)

    for name, cluster in ((adding, "riga"), (told, "tallinn"), (removing, "riga"), (leaving, "riga")):
        worker = f"{name}-{cluster[0]}"
        eventually(partial(consistent, name, cluster, worker), what=f"{worker} and the list agree")


def test_a_member_dies_during_a_member_change(
    hansa: Federation, alice: httpx.Client, deploy: Deploy, send: Send
) -> None:
    name = fresh("frail")
    deploy([member("visby", f"{name}-v")], name=name)
    held = hansa.gates["riga"].hold("POST /system/services", after=True)
    adding = send(alice, "POST", f"/system/federation/{name}", json={"members": [member("riga", f"{name}-r")]})
    killed(hansa, "riga", held)
    answer = adding.result(60)
    assert answer.status_code == 200, answer.text
    riga = of_alice(hansa, "riga")
    eventually(lambda: not absent(riga, f"{name}-r"), what="deployed after all")

    def in_sync() -> bool:
        told = alice.get(f"/system/federation/{name}", params={"state": "true"}).json()["state"]
        return all(one["in_sync"] for one in told)

    eventually(in_sync, what="in sync")


def one_output(hansa: Federation, alice: httpx.Client, name: str, job: str) -> None:
    told = ended(alice, job, 60)
    assert told["status"] == "Succeeded", told
    for key in ("visby", "riga"):
        worker = f"{name}-{key[0]}"
        there = of_alice(hansa, key)
        if not absent(there, worker):
            eventually(partial(nothing_runs, there, worker), what=f"rest at {key}")
    assert len(outputs(hansa, alice, name)) == 1


def test_the_coordinator_dies_during_hand_overs_and_runs(
    hansa: Federation, alice: httpx.Client, deploy: Deploy
) -> None:
    """One job was about to be handed over, one was taken without our hearing of it, one runs, one waits to publish."""
    names = [fresh("offered"), fresh("taken"), fresh("running"), fresh("finished")]
    offered, taken, running, finished = names
    for name in names:
        script = "sleep 4; " + RUN if name == running else RUN
        deploy([member("visby", f"{name}-v")], name=name, script=script)
    jobs = {running: submit(alice, running)}
    eventually(lambda: story_of(alice, jobs[running])["status"] == "Running", what="running")
    held = [hansa.gates["lubeck"].hold("POST /v1/delegations/")]  # its outputs are ready, its origin is asked
    jobs[finished] = submit(alice, finished)
    held[-1].reached()
    for name, after in ((offered, False), (taken, True)):
        held.append(hansa.gates["visby"].hold(f"POST /job/{name}-v", after=after))
        jobs[name] = submit(alice, name)
        held[-1].reached()
    killed(hansa, "lubeck", *held)
    for name, job in jobs.items():
        one_output(hansa, alice, name, job)


def test_a_member_dies_during_hand_overs_and_runs(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    names = [fresh("offered"), fresh("taken"), fresh("running")]
    offered, taken, running = names
    for name in names:
        script = "sleep 4; " + RUN if name == running else RUN
        deploy([member("visby", f"{name}-v"), member("riga", f"{name}-r", 1)], name=name, script=script)
    jobs = {running: submit(alice, running)}
    eventually(lambda: story_of(alice, jobs[running])["status"] == "Running", what="running")
    held: list[Held] = []
    for name, after in ((offered, False), (taken, True)):
        held.append(hansa.gates["visby"].hold(f"POST /job/{name}-v", after=after))
        jobs[name] = submit(alice, name)
        held[-1].reached()
    killed(hansa, "visby", *held)
    for name, job in jobs.items():
        one_output(hansa, alice, name, job)


def test_a_delete_cut_short_leaves_all_or_nothing(
    hansa: Federation, alice: httpx.Client, deploy: Deploy, send: Send
) -> None:
    name = fresh("gone")
    deploy([member("visby", f"{name}-v"), member("riga", f"{name}-r")], name=name)
    held = hansa.gates["riga"].hold(f"DELETE /system/services/{name}-r")
    send(alice, "DELETE", f"/system/services/{name}")
    killed(hansa, "lubeck", held)

    def settled() -> bool:
        there = [not absent(of_alice(hansa, cluster), f"{name}-{cluster[0]}") for cluster in ("visby", "riga")]
        return there == [not absent(alice, name)] * 2

    eventually(settled, what="all or nothing")
    if not absent(alice, name):
        assert definition_of(of_alice(hansa, "visby"), f"{name}-v")
