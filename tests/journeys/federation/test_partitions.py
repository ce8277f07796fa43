"""When links are cut while jobs are handed over or run, and heal later: is each job's output seen exactly once?

Three clusters in network namespaces. `HANSA_TEST_PARTITIONS=200` tries more seeds, `HANSA_TEST_PARTITION_SEED=7` one.
"""

import os
import random
import time
from collections.abc import Iterator
from functools import partial

import pytest

from journeys.federation import stories
from journeys.federation.stories import (
    absent,
    ended,
    eventually,
    fresh,
    member,
    nothing_runs,
    outputs,
    story_of,
    submit,
)
from real.federation import Federation, cut_off_federation
from real.identity_provider import IdentityProvider
from real.netns import Network

# Every run leaves a file of its own beside those of other runs, so that a second visible run cannot hide.
# An exile's takes longer, so that it is still under way when the link is cut.
RUN = """\
tag=$(cat "$INPUT_FILE_PATH")
case $tag in *exile) sleep 5;; *) sleep 1;; esac
echo "$OSCAR_SERVICE_NAME" > "$TMP_OUTPUT_DIR/$tag.$(date +%s%N)"
"""
_SHORT = {
    "federation.call_timeout": 1.5,
    "federation.handover_patience": 1.5,
    "federation.lost_after": 2.5,
    "federation.rescheduler_threshold": 1,
}
_ONE = os.environ.get("HANSA_TEST_PARTITION_SEED")
SEEDS = [int(_ONE)] if _ONE else list(range(int(os.environ.get("HANSA_TEST_PARTITIONS", "10"))))


@pytest.fixture(scope="module")
def islands(provider: IdentityProvider) -> Iterator[Federation]:
    """lubeck can run nothing itself."""
    settings = {"lubeck": {"jobs.cpu": "100m"}}
    names = ("lubeck", "visby", "riga")
    with cut_off_federation(*names, provider=provider, settings=settings, common=_SHORT) as running:
        yield running


@pytest.fixture
def net(islands: Federation) -> Iterator[Network]:
    assert islands.net is not None
    yield islands.net
    islands.net.heal_all()


@pytest.fixture(scope="module")
def service(islands: Federation) -> str:
    name = fresh("sea")
    alice = islands.user("alice", "lubeck")
    members = [member("visby", f"{name}-v"), member("riga", f"{name}-r")]
    token = islands.refresh_token("alice")
    stories.create(alice, stories.federated(name, members, token=token, delegation="random", script=RUN))
    return name


def sever(net: Network, chance: random.Random) -> str:
    """Cuts something; what, in words."""
    victim = chance.choice(["visby", "riga"])
    match chance.randrange(4):
        case 0:
            net.cut(victim)
            return f"{victim} lost its carrier"
        case 1:
            net.cut_pair("lubeck", victim)
            return f"nothing passes between lubeck and {victim}"
        case 2:
            net.one_way("lubeck", victim)
            return f"nothing passes from lubeck to {victim}"
        case _:
            net.one_way(victim, "lubeck")
            return f"nothing passes from {victim} to lubeck"


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.deep] * (at > 1)) for at, seed in enumerate(SEEDS)]
)
def test_one_visible_output_and_no_lost_job(islands: Federation, net: Network, service: str, seed: int) -> None:
    chance = random.Random(seed)
    alice = islands.user("alice", "lubeck")
    tags = [f"seed-{seed}-job-{number}" for number in range(3)]  # with dashes: no base64
    jobs = {tag: submit(alice, service, tag.encode()) for tag in tags}
    if chance.random() < 0.5:  # during the run; otherwise during the hand-over
        first = jobs[tags[0]]
        eventually(lambda: story_of(alice, first)["phase"] == "away", what="away")
    time.sleep(chance.uniform(0, 0.6))  # what is tried is exactly this: any moment
    happened = sever(net, chance)
    time.sleep(chance.uniform(0.5, 5))
    net.heal_all()
    told = {tag: ended(alice, job, 60) for tag, job in jobs.items()}
    assert {tag: one["status"] for tag, one in told.items()} == dict.fromkeys(tags, "Succeeded"), (happened, told)
    for cluster, worker in (("visby", f"{service}-v"), ("riga", f"{service}-r")):
        eventually(partial(nothing_runs, islands.user("alice", cluster), worker), what=f"rest at {cluster}")
    seen = outputs(islands, alice, service, f"out/seed-{seed}-")
    for tag, one in told.items():
        mine = [content for key, content in seen.items() if key.startswith(f"out/{tag}.")]
        assert len(mine) == 1, (happened, tag, seen, one)
        assert mine[0].decode().strip() == one["delegation"]["service"], (happened, one)


def test_a_member_that_stays_away_loses_its_job_to_another(islands: Federation, net: Network, service: str) -> None:
    alice = islands.user("alice", "lubeck")
    job = submit(alice, service, b"the-exile")
    eventually(lambda: story_of(alice, job)["phase"] == "away", what="away")
    where = story_of(alice, job)["delegation"]["cluster_id"]
    net.cut(where)
    told = ended(alice, job, 120)  # the other may be left alone for a minute, after all that was cut before
    assert told["status"] == "Succeeded", told
    assert told["delegation"]["cluster_id"] != where
    net.heal_all()
    worker = f"{service}-{where[0]}"
    there = islands.user("alice", where)

    def superseded() -> bool:
        """An offer that lay in a socket during the cut may still arrive: then it runs once more, as much in vain."""
        exile = story_of(there, job)
        return exile["status"] == "Failed" and "another" in exile["reason"]

    eventually(superseded, what="the exile's end, and why")
    eventually(lambda: nothing_runs(there, worker), what="rest")
    assert len(outputs(islands, alice, service, "out/the-exile.")) == 1


def test_a_create_during_a_cut_is_undone_when_the_link_heals(islands: Federation, net: Network) -> None:
    name = fresh("cut")
    alice = islands.user("alice", "lubeck")
    net.cut_pair("lubeck", "riga")
    members = [member("visby", f"{name}-v"), member("riga", f"{name}-r")]
    answer = alice.post("/system/services", json=stories.federated(name, members, token=islands.refresh_token("alice")))
    assert answer.status_code in (401, 502), answer.text
    assert f"riga/{name}-r" in answer.text
    net.heal_all()
    for cluster, worker in (("visby", f"{name}-v"), ("riga", f"{name}-r"), ("lubeck", name)):
        assert absent(islands.user("alice", cluster), worker)
