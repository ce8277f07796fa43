"""A member that tells huge definitions of its replica, so that we keep them: what was there before a create is kept for
putting it back, within bounds, and no longer than that."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from journeys.federation import stories
from journeys.federation.stories import eventually, fresh, member
from real.federation import Cluster, Federation, federation
from real.identity_provider import IdentityProvider
from real.listener import Listener, listener

MIB = 2**20
_ABILITIES = ["delegation-permits", "replica-keys", "mesh-tokens", "onward-keys"]


@dataclass(frozen=True, slots=True)
class Hoard:
    """lubeck, and what answers as the hostile visby: it takes no definition."""

    hansa: Federation
    poser: Listener
    token: str

    @property
    def lubeck(self) -> Cluster:
        return self.hansa["lubeck"]

    @property
    def alice(self) -> httpx.Client:
        return self.hansa.user("alice", "lubeck")

    def create(self, size: int, *, undone: bool, members: int = 1) -> httpx.Response:
        """With replicas of this size that visby has already; whether it lets us take back what we did there."""
        name = fresh("fat")
        marks = dict(zip(stories.MARKS, ("lubeck", name, "true"), strict=True))
        there = [f"{name}-v{number}" for number in range(members)]
        for replica in there:
            undoing = f"/v1/replicas/{replica}?settled=true"
            told = {"name": replica, "annotations": marks, "script": "x" * size}
            self.poser.says[f"/system/services/{replica}"] = self.poser.says[undoing] = told
            if not undone:
                self.poser.statuses[undoing] = 500
        members_there = [member("visby", replica) for replica in there]
        wanted = stories.federated(name, members_there, token=self.token, input=[], output=[])
        return self.alice.post("/system/services", json=wanted)

    def written(self) -> int:
        return sum(visit.method == "PUT" for visit in self.poser.visits)

    def rows(self, question: str) -> Any:
        with closing(sqlite3.connect(f"file:{self.lubeck.data / 'hansa.db'}?mode=ro", uri=True)) as database:
            return database.execute(question).fetchone()[0]

    def on_disk(self) -> int:
        return sum(one.stat().st_size for one in self.lubeck.data.glob("hansa.db*"))


@pytest.fixture
def hoard(sign_in_provider: IdentityProvider) -> Iterator[Hoard]:
    with federation("lubeck", "visby", provider=sign_in_provider) as hansa, listener() as poser:
        poser.says["/v1/about"] = {"product": "hansa", "version": "1", "capabilities": _ABILITIES}
        poser.statuses["/system/services"] = 400
        hansa.gates["visby"].target = ("127.0.0.1", int(poser.url.rsplit(":", 1)[1]))
        yield Hoard(hansa, poser, hansa.refresh_token("alice"))


def test_what_was_there_before_is_not_kept_once_it_is_over(hoard: Hoard) -> None:
    for _ in range(12):
        answer = hoard.create(4 * MIB, undone=True)
        assert answer.status_code == 502, answer.text
        assert "rollback completed" in answer.text
    assert hoard.written() == 12
    assert hoard.rows("select count(*) from operations where state = 'undone'") == 12
    assert hoard.on_disk() < 32 * MIB


def test_what_cannot_be_put_back_fills_neither_disk_nor_memory(hoard: Hoard) -> None:
    answers = [hoard.create(4 * MIB, undone=False) for _ in range(12)]
    assert {answer.status_code for answer in answers} == {502}
    assert "rollback errors" in answers[0].text
    assert "earlier changes" in answers[-1].text
    assert hoard.written() == 7  # before more is touched than can be kept, it fails
    assert hoard.on_disk() < 64 * MIB
    hoard.lubeck.restart()
    open_ones = "select count(*) from operations where state = 'undoing'"
    assert hoard.rows(open_ones) == 7
    hoard.poser.statuses.update({path: 404 for path in hoard.poser.statuses if path.startswith("/v1/replicas/")})
    eventually(lambda: hoard.rows(open_ones) == 0, what="taken back")
    assert "rollback completed" in hoard.create(4 * MIB, undone=True).text  # and there is room again
    assert hoard.written() == 8


def test_nor_do_many_members_of_one_service(hoard: Hoard) -> None:
    answer = hoard.create(4 * MIB, undone=True, members=12)
    assert answer.status_code == 502
    assert "earlier changes" in answer.text
    assert "delete the service there" in answer.text
    assert hoard.written() == 7
    assert hoard.rows("select count(*) from befores") == 0
    assert hoard.on_disk() < 64 * MIB


def test_one_that_is_larger_than_any_of_ours_is_not_taken_over(hoard: Hoard) -> None:
    answer = hoard.create(9 * MIB, undone=True)
    assert answer.status_code == 401
    assert "answered more than" in answer.text
    assert hoard.written() == 0
