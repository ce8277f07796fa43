"""A job that is taken from a member and given to it once more: its run goes on with the keys of now, or begins anew."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from journeys.federation import stories
from journeys.federation.stories import ended, eventually, fresh, member
from real.federation import Federation, federation
from real.identity_provider import IdentityProvider


@pytest.fixture(scope="module")
def hansa(provider: IdentityProvider) -> Iterator[Federation]:
    """visby waits for an answer for as long as the test holds it up."""
    settings: dict[str, dict[str, Any]] = {
        "lubeck": {"jobs.cpu": "100m", "federation.lost_after": 1},
        "visby": {"federation.call_timeout": 60},
    }
    with federation("lubeck", "visby", provider=provider, settings=settings) as running:
        yield running


def test_a_run_that_goes_on_stores_its_outputs(hansa: Federation, alice: httpx.Client) -> None:
    name = fresh("again")
    stories.create(alice, stories.federated(name, [member("visby", f"{name}-v")], token=hansa.refresh_token("alice")))
    asks = hansa.gates["lubeck"].hold("POST /v1/delegations/")  # its script has ended, and it wants to publish
    hansa.store(alice).put_object(Bucket=name, Key="in/given", Body=b"for the member")
    job = eventually(lambda: next(iter(alice.get(f"/system/logs/{name}").json()["jobs"]), ""), what="accepted")
    asks.reached()
    hansa.gates["visby"].shut()
    eventually(lambda: "silent" in stories.story_of(alice, job)["reason"], what="taken back, and its keys ended")
    hansa.gates["visby"].open()
    eventually(lambda: stories.story_of(alice, job)["phase"] == "away", what="given to visby once more")
    asks.release()
    story = ended(alice, job)
    assert (story["status"], "visby" in story["reason"]) == ("Succeeded", True), story
    assert set(stories.outputs(hansa, alice, name).values()) == {f"by {name}-v\n".encode()}
    assert alice.delete(f"/system/services/{name}").status_code == 204


def test_a_run_that_failed_for_its_keys_begins_anew(hansa: Federation, alice: httpx.Client) -> None:
    """visby was away when the job was taken from it, and starts it again before it hears anything."""
    name = fresh("again")
    script = f"echo begun; {stories.WHERE}"
    definition = stories.federated(
        name, [member("visby", f"{name}-v")], token=hansa.refresh_token("alice"), script=script
    )
    stories.create(alice, definition)
    # visby has the job, and has not told so yet: it is killed before it begins
    told = hansa.gates["visby"].hold(f"POST /job/{name}-v", after=True)
    hansa.store(alice).put_object(Bucket=name, Key="in/given", Body=b"for the member")
    job = eventually(lambda: next(iter(alice.get(f"/system/logs/{name}").json()["jobs"]), ""), what="accepted")
    told.reached()
    hansa["visby"].kill()
    hansa.gates["visby"].shut()
    told.release()
    eventually(lambda: "no member" in stories.story_of(alice, job)["reason"], what="taken back, and its keys ended")
    hansa["visby"].start()
    visby = hansa.user("alice", "visby")
    eventually(lambda: stories.nothing_runs(visby, f"{name}-v"), what="failed at visby, or thrown away")
    hansa.gates["visby"].open()
    story = ended(alice, job, 120.0)  # a member that failed rests for a minute at most
    assert (story["status"], "visby" in story["reason"]) == ("Succeeded", True), story
    assert alice.delete(f"/system/services/{name}").status_code == 204
