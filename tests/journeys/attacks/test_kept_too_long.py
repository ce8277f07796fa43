"""A member that has a job and says for ever that it runs: its origin counts the time itself, and takes the job back."""

from collections.abc import Iterator

import httpx
import pytest

from journeys.attacks.lent_keys import denied, overhear, store, stores_in, told
from journeys.federation import stories
from journeys.federation.stories import ended, eventually, fresh, member
from real.federation import Federation, federation
from real.identity_provider import IdentityProvider
from real.listener import listener

# visby's replica never ends; whoever else runs the job does
_SCRIPT = f'case "$OSCAR_SERVICE_NAME" in *-v) echo begun; sleep 600;; esac; {stories.WHERE}'


@pytest.fixture(scope="module")
def hansa(sign_in_provider: IdentityProvider) -> Iterator[Federation]:
    """At lubeck jobs have two seconds, and as long for their files to come and to go; visby knows no such limit."""
    short = {"jobs.cpu": "100m", "jobs.time_limit": 2, "federation.lost_after": 1, "federation.probe_ttl": 0.2}
    settings = {"lubeck": short, "visby": {}, "riga": {}}
    with federation("lubeck", "visby", "riga", provider=sign_in_provider, settings=settings) as running:
        yield running


@pytest.fixture
def alice(hansa: Federation) -> httpx.Client:
    return hansa.user("alice", "lubeck")


def test_a_job_that_never_ends_is_taken_back_and_runs_elsewhere(hansa: Federation, alice: httpx.Client) -> None:
    name = fresh("kept")
    members = [member("visby", f"{name}-v", priority=1), member("riga", f"{name}-r", priority=2)]
    definition = stories.federated(name, members, token=hansa.refresh_token("alice"), script=_SCRIPT)
    stories.create(alice, definition)
    overhear(hansa)
    origin = hansa.store(alice)
    origin.put_object(Bucket=name, Key="in/given", Body=b"for the member")
    job = eventually(lambda: next(iter(alice.get(f"/system/logs/{name}").json()["jobs"]), ""), what="accepted")
    eventually(lambda: "begun" in alice.get(f"/system/logs/{name}/{job}").text, what="running at visby")
    lent = stores_in(told(hansa))
    assert lent
    visby = hansa.user("alice", "visby")
    story = ended(alice, job)
    assert story["status"] == "Succeeded", story
    assert "riga" in story["reason"]
    assert set(stories.outputs(hansa, alice, name).values()) == {f"by {name}-r\n".encode()}
    # visby was told to stop, and its keys open nothing
    eventually(lambda: stories.nothing_runs(visby, f"{name}-v"), what="ended at visby")
    assert denied(store(lent[0]).get_object, Bucket=name, Key="in/given")
    assert alice.delete(f"/system/services/{name}").status_code == 204


def test_whoever_had_it_for_too_long_does_not_get_it_again(hansa: Federation, alice: httpx.Client) -> None:
    name = fresh("kept")
    members = [member("visby", f"{name}-v", priority=1)]
    definition = stories.federated(name, members, token=hansa.refresh_token("alice"), script=_SCRIPT)
    stories.create(alice, definition)
    job = stories.submit(alice, name)
    words = "it had this job before, and for too long"
    eventually(lambda: words in stories.story_of(alice, job)["reason"], what="taken back, and not given away again")
    assert stories.story_of(alice, job)["status"] == "Pending"
    assert alice.delete(f"/system/services/{name}").status_code == 204


def test_who_answers_nothing_that_helps_loses_the_job(hansa: Federation, alice: httpx.Client) -> None:
    name = fresh("kept")
    members = [member("visby", f"{name}-v", priority=1), member("riga", f"{name}-r", priority=2)]
    definition = stories.federated(name, members, token=hansa.refresh_token("alice"), script=_SCRIPT)
    stories.create(alice, {**definition, "input": [], "output": []})
    gate, former = hansa.gates["visby"], hansa.gates["visby"].target
    held = gate.hold("GET /v1/delegations/")  # it has the job, and was not asked yet
    job = stories.submit(alice, name)
    held.reached()
    with listener() as other:
        gate.target = ("127.0.0.1", int(other.url.rsplit(":", 1)[1]))
        gate.shut()
        gate.open()
        try:
            story = ended(alice, job)
            asked = [one.path for one in other.visits]
        finally:
            gate.target = former
            gate.shut()
            gate.open()
    assert f"/v1/delegations/{job}" in asked
    assert (story["status"], story["delegation"]["cluster_id"]) == ("Succeeded", "riga")
    assert alice.delete(f"/system/services/{name}").status_code == 204
