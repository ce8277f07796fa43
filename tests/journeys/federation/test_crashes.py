"""A manager is killed while several of its requests to others are under way: is everything as it should be afterwards?

Gates hold the requests, several of them for one kill, where what matters is how far the others have come. Kills at
every commit, one by one, are in `test_every_write_of_changes` and `test_every_write_of_hand_overs`. Here the object
stores die with their managers.
"""

import concurrent.futures
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import httpx
import pytest

from journeys.federation.conftest import Deploy
from journeys.federation.stories import (
    absent,
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

pytestmark = pytest.mark.deep

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
    held.append(gates["riga"].hold(f"DELETE /v1/replicas/{removing}-r"))
    gone = {"members": [member("riga", f"{removing}-r")], "delete": True}
    send(alice, "DELETE", f"/system/federation/{removing}", json=gone)
    held[-1].reached()
    held.append(gates["visby"].hold("PUT /v1/replicas/"))  # those who stay are told before the leaving one goes
    gone = {"members": [member("riga", f"{leaving}-r")], "delete": True}
    send(alice, "DELETE", f"/system/federation/{leaving}", json=gone)
    killed(hansa, "lubeck", *held)

    def consistent(name: str, cluster: str, worker: str) -> bool:
        listed = f"{cluster}/{worker}" in members_at(alice, name)
        return listed != absent(of_alice(hansa, cluster), worker)

    for name, cluster in ((adding, "riga"), (told, "tallinn"), (removing, "riga"), (leaving, "riga")):
        worker = f"{name}-{cluster[0]}"
        eventually(partial(consistent, name, cluster, worker), what=f"{worker} and the list agree")


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
