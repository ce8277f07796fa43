"""A member takes its time over every job it is offered: jobs that go elsewhere do not wait for it."""

from collections.abc import Iterator
from typing import Any

import pytest

from journeys.federation import stories
from journeys.federation.stories import ended, eventually, fresh, member
from real.federation import Federation, federation
from real.identity_provider import IdentityProvider

_MANY = 40  # more than a manager offers at once


@pytest.fixture(scope="module")
def hansa(sign_in_provider: IdentityProvider) -> Iterator[Federation]:
    """lubeck would wait for an answer for longer than this test does."""
    settings = {"lubeck": {"jobs.cpu": "100m", "federation.call_timeout": 300}, "visby": {}, "riga": {}}
    with federation("lubeck", "visby", "riga", provider=sign_in_provider, settings=settings) as running:
        yield running


def test_a_member_that_is_slow_to_answer_holds_up_its_own_jobs_only(hansa: Federation) -> None:
    alice = hansa.user("alice", "lubeck")
    slow, quick = fresh("slow"), fresh("quick")
    for name, cluster in ((slow, "visby"), (quick, "riga")):
        bare: dict[str, Any] = {"script": "true", "input": [], "output": [], "token": hansa.refresh_token("alice")}
        stories.create(alice, stories.federated(name, [member(cluster, f"{name}-m")], **bare))
    held = [hansa.gates["visby"].hold(f"POST /job/{slow}", after=True) for _ in range(_MANY)]
    waiting = [stories.submit(alice, slow) for _ in range(_MANY)]
    held[0].reached()
    assert ended(alice, stories.submit(alice, quick))["status"] == "Succeeded"
    assert not any(stories.story_of(alice, job)["status"] == "Succeeded" for job in waiting)
    hansa.gates["visby"].open()
    eventually(lambda: stories.nothing_runs(alice, slow), what="all handed over, and ended", seconds=120)
    assert {stories.story_of(alice, job)["status"] for job in waiting} == {"Succeeded"}
    for name in (slow, quick):
        assert alice.delete(f"/system/services/{name}").status_code == 204
