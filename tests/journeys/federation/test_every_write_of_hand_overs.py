"""A manager is killed at every commit of a hand-over and the run after it: is each job's output seen exactly once?

Once where the job came from, once where it went. The lists of moments are complete, see `test_every_write_of_changes`.
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import httpx
import pytest

from hansa.services.delegation import LOST
from journeys.federation import stories
from journeys.federation.crashing import Later, Moment, Scene, after, at, before, crashing_federation, undisturbed
from journeys.federation.stories import ended, eventually, fresh, member, nothing_runs, outputs, story_of
from real.identity_provider import IdentityProvider
from real.postgres import Server

if TYPE_CHECKING:
    from real.object_store import RunningStore

pytestmark = pytest.mark.deep

pytest_plugins = ("real.object_store",)

# Every run leaves a file of its own beside those of other runs, so that a second visible run cannot hide. It takes a
# while, so that its origin has written down who has the job before it is asked for the right to publish.
RUN = 'tag=$(cat "$INPUT_FILE_PATH"); echo "this is $tag"; sleep 0.6; date > "$TMP_OUTPUT_DIR/$tag.$(date +%s%N)"'


@pytest.fixture(scope="module")
def _federation(
    provider: IdentityProvider, postgres_server: Server, object_store_server: "RunningStore"
) -> Iterator[Scene]:
    """lubeck can run nothing itself."""
    small = {"lubeck": {"jobs.cpu": "100m"}}
    with crashing_federation(provider, postgres_server, object_store_server, small) as running:
        yield running


@pytest.fixture
def scene(_federation: Scene) -> Iterator[Scene]:
    with undisturbed(_federation) as running:
        yield running


@pytest.fixture(scope="module")
def service(_federation: Scene) -> str:
    """visby is asked first."""
    name = fresh("sea")
    members = [member("visby", f"{name}-v"), member("riga", f"{name}-r", 1)]
    token = _federation.token()
    stories.create(_federation.alice(), stories.federated(name, members, token=token, script=RUN))
    return name


def submit(scene: Scene, service: str, job: str) -> Later:
    """Under a name of the sender's choice: sent twice it is one job."""
    return scene.send("POST", f"/job/{service}", headers={"X-Delegated-Job-ID": job}, content=job.encode())


def submit_surely(scene: Scene, service: str, job: str, answer: Later) -> None:
    """Somebody who got no answer asks again."""
    try:
        assert answer.result(60).status_code == 201
    except httpx.TransportError:
        assert submit(scene, service, job).result(60).status_code == 201


def holds_no_receipt(client: httpx.Client, job: str) -> bool:
    """That of a run that lost its right goes with the next sweep, for which we need not wait."""
    answer = client.get(f"/v1/jobs/{job}")
    return answer.status_code == 404 or "received" not in answer.json() or answer.json()["reason"] in LOST


def assert_ran_once(scene: Scene, service: str, job: str) -> None:
    alice = scene.alice()
    told = ended(alice, job, 60)
    assert told["status"] == "Succeeded", told
    for cluster in ("visby", "riga"):
        resting = partial(nothing_runs, scene.alice(cluster), f"{service}-{cluster[0]}")
        eventually(resting, what=f"rest at {cluster}")
    assert len(outputs(scene.hansa, scene.hansa["lubeck"].admin, service, f"out/{job}.")) == 1
    log = f"/system/logs/{service}/{job}"
    eventually(lambda: f"this is {job}" in alice.get(log).text, what="its log at home")
    assert story_of(alice, job)["finished"] == told["finished"]
    away = "select phase from delegations where job = %s and phase in ('offering', 'away')"
    eventually(lambda: not scene.written("lubeck", away, job), what="the delegation is closed")
    for cluster in ("visby", "riga"):
        eventually(partial(holds_no_receipt, scene.alice(cluster), job), what=f"no receipt at {cluster}")
    query = "select r.job from receipts r left join jobs j on j.name = r.job where r.job = %s and j.name is null"
    assert not scene.written("visby", query, job)


CLAIMED = "update jobs (Pending here -> Pending offering) + insert delegations (offering)"
ACCEPTED = "update delegations (offering -> away) + update jobs (Pending offering -> Pending away)"
BEGUN = "update delegations (away: running) + update jobs (Pending away -> Running away)"
GRANTED = "update delegations (away: publisher)"
AT_ORIGIN = [
    before("insert jobs (Pending here)"),
    after("insert jobs (Pending here)"),
    before(CLAIMED),
    after(CLAIMED),
    before(ACCEPTED),
    after(ACCEPTED),
    before(BEGUN),
    after(BEGUN),
    before(GRANTED),
    after(GRANTED),
    before("update jobs (Running away -> Succeeded away)"),
    after("update jobs (Running away -> Succeeded away)"),
    before("update delegations (away -> done)"),
    after("update delegations (away -> done)"),
]
TAKEN = "insert receipts + insert jobs (Pending here)"
AT_TARGET = [
    before(TAKEN),
    after(TAKEN),
    before("update jobs (Pending here -> Running here)"),
    after("update jobs (Pending here -> Running here)"),
    before("update jobs (Running here -> Succeeded here)"),
    after("update jobs (Running here -> Succeeded here)"),
    before("delete receipts"),
    after("delete receipts"),
]


@at(AT_ORIGIN)
def test_the_origin_dies(scene: Scene, service: str, moment: Moment) -> None:
    job = fresh("parcel")
    answer = scene.dies("lubeck", moment, lambda: submit(scene, service, job))
    submit_surely(scene, service, job, answer)
    assert_ran_once(scene, service, job)


@at(AT_TARGET)
def test_the_target_dies(scene: Scene, service: str, moment: Moment) -> None:
    job = fresh("parcel")
    answer = scene.dies("visby", moment, lambda: submit(scene, service, job))
    submit_surely(scene, service, job, answer)
    assert_ran_once(scene, service, job)


def test_a_log_that_could_not_be_had_at_once_comes_later(scene: Scene, service: str) -> None:
    """The target is about to be told that it may forget the job: not before its log is here."""
    job = fresh("parcel")
    held = scene.hansa.gates["visby"].hold(f"GET /v1/delegations/{job}/log")
    submit_surely(scene, service, job, submit(scene, service, job))
    held.reached()
    held.release(lost=True)
    assert_ran_once(scene, service, job)


def test_every_write_of_a_hand_over_is_listed(scene: Scene, service: str) -> None:
    job = fresh("listed")
    submit_surely(scene, service, job, submit(scene, service, job))
    assert_ran_once(scene, service, job)
    scene.assert_listed("lubeck", AT_ORIGIN)
    scene.assert_listed("visby", AT_TARGET)
