"""Is a federated create all or nothing, whatever one of its members does?"""

import concurrent.futures
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from journeys.federation import stories
from journeys.federation.stories import absent, definition_of, eventually, fresh, member
from real.federation import Federation
from real.gate import Held
from real.listener import Listener

ALL = ("visby", "riga", "tallinn")


def of_alice(hansa: Federation, cluster: str) -> httpx.Client:
    return hansa.user("alice", cluster)


def star(hansa: Federation, name: str, **more: Any) -> dict[str, Any]:
    token = hansa.refresh_token("alice")
    return stories.federated(name, [member(cluster, f"{name}-{cluster}") for cluster in ALL], token=token, **more)


@pytest.fixture
def background() -> Iterator[concurrent.futures.ThreadPoolExecutor]:
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        yield threads


def assert_nothing_left(hansa: Federation, name: str, clusters: tuple[str, ...] = ALL) -> None:
    assert absent(of_alice(hansa, "lubeck"), name)
    for cluster in clusters:
        assert absent(of_alice(hansa, cluster), f"{name}-{cluster}"), cluster
    buckets = [one["bucket_name"] for one in of_alice(hansa, "lubeck").get("/system/buckets").json() or []]
    assert name not in buckets


def test_a_member_that_refuses_undoes_all(hansa: Federation, alice: httpx.Client) -> None:
    name = fresh("refused")
    answer = alice.post("/system/services", json=star(hansa, name, image="alpine"))
    assert answer.status_code == 502, answer.text
    assert f"tallinn/{name}-tallinn" in answer.text
    assert "not allowed here" in answer.text
    assert "rollback completed" in answer.text
    assert_nothing_left(hansa, name)


def lose_request(held: Held) -> None:
    held.release(lost=True)


def never_answer(held: Held) -> None:
    pass  # until the caller's patience is over


@pytest.mark.parametrize(
    ("after", "then"),
    [(False, lose_request), (True, lose_request), (False, never_answer), (True, never_answer)],
    ids=["request lost", "answer lost", "hangs before", "hangs after"],
)
def test_a_member_that_breaks_off_or_hangs_undoes_all(
    hansa: Federation,
    alice: httpx.Client,
    background: concurrent.futures.ThreadPoolExecutor,
    after: bool,
    then: Callable[[Held], None],
) -> None:
    name = fresh("broken")
    held = hansa.gates["tallinn"].hold("POST /system/services", after=after)
    creating = background.submit(alice.post, "/system/services", json=star(hansa, name))
    held.reached()
    then(held)
    answer = creating.result(60)
    assert answer.status_code == 502, answer.text
    assert f"tallinn/{name}-tallinn" in answer.text
    assert "rollback completed" in answer.text
    held.release(lost=True)
    assert_nothing_left(hansa, name)
    stories.create(alice, star(hansa, name))  # nothing stands in the way of trying again
    assert alice.delete(f"/system/services/{name}").status_code == 204


def test_a_member_out_of_reach_stops_the_create_before_anything_changes(hansa: Federation, alice: httpx.Client) -> None:
    name = fresh("away")
    hansa.gates["tallinn"].shut("refuse")
    seen = {cluster: len(hansa.gates[cluster].requests) for cluster in ALL}
    answer = alice.post("/system/services", json=star(hansa, name))
    assert answer.status_code == 401, answer.text
    assert f"tallinn/{name}-tallinn" in answer.text
    for cluster in ("visby", "riga"):
        sent = hansa.gates[cluster].requests[seen[cluster] :]
        assert not [line for line in sent if line.startswith(("POST /system/services", "PUT"))]
    hansa.gates["tallinn"].open()
    assert_nothing_left(hansa, name)


def test_what_cannot_be_undone_now_is_named_and_undone_later(
    hansa: Federation, alice: httpx.Client, background: concurrent.futures.ThreadPoolExecutor
) -> None:
    name = fresh("later")
    held = hansa.gates["tallinn"].hold("POST /system/services", after=True)
    creating = background.submit(alice.post, "/system/services", json=star(hansa, name))
    held.reached()
    hansa.gates["tallinn"].shut("refuse")
    held.release(lost=True)
    answer = creating.result(60)
    assert answer.status_code == 502
    assert "rollback errors" in answer.text
    assert f"tallinn/{name}-tallinn" in answer.text
    assert absent(alice, name)
    tallinn = of_alice(hansa, "tallinn")
    assert not absent(tallinn, f"{name}-tallinn")
    operation = next(word for word in answer.text.replace("/", " ").split() if word.startswith("op-")).strip('".,;)')
    told = alice.get(f"/v1/operations/{operation}").json()
    assert told["state"] == "undoing"
    hansa.gates["tallinn"].open()
    eventually(lambda: absent(tallinn, f"{name}-tallinn"), what="undone")
    eventually(lambda: alice.get(f"/v1/operations/{operation}").json()["state"] == "undone")
    assert_nothing_left(hansa, name)


def test_a_foreign_service_of_that_name_is_left_as_it_is(hansa: Federation, alice: httpx.Client) -> None:
    name = fresh("foreign")
    tallinn = of_alice(hansa, "tallinn")
    theirs = {"name": f"{name}-tallinn", "image": "debian", "script": "echo mine", "memory": "64Mi"}
    stories.create(tallinn, theirs)
    before = definition_of(tallinn, f"{name}-tallinn")
    answer = alice.post("/system/services", json=star(hansa, name))
    assert answer.status_code == 502, answer.text
    assert f"tallinn/{name}-tallinn" in answer.text
    assert "of its own" in answer.text
    assert_nothing_left(hansa, name, ("visby", "riga"))
    assert definition_of(tallinn, f"{name}-tallinn") == before
    assert tallinn.delete(f"/system/services/{name}-tallinn").status_code == 204


def test_an_older_worker_of_the_group_gets_its_former_definition_back(hansa: Federation, alice: httpx.Client) -> None:
    name = fresh("older")
    first = stories.federated(name, [member("visby", f"{name}-visby")], token=hansa.refresh_token("alice"))
    stories.create(alice, {**first, "script": "echo first", "annotations": {"note": "one"}})
    assert alice.delete(f"/system/services/{name}", params={"workers": "keep"}).status_code == 204
    visby = of_alice(hansa, "visby")
    before = definition_of(visby, f"{name}-visby")
    answer = alice.post("/system/services", json=star(hansa, name, image="alpine", script="echo second"))
    assert answer.status_code == 502, answer.text
    assert definition_of(visby, f"{name}-visby") == before
    assert_nothing_left(hansa, name, ("riga", "tallinn"))
    # and a create that succeeds takes it over
    stories.create(alice, star(hansa, name, script="echo third"))
    assert definition_of(visby, f"{name}-visby")["script"] == "echo third"
    assert alice.delete(f"/system/services/{name}").status_code == 204
    assert absent(visby, f"{name}-visby")


def test_an_older_worker_gets_its_former_secrets_back_too(hansa: Federation, alice: httpx.Client) -> None:
    """Nobody can read them, so the member itself has to know what they were."""
    name = fresh("secret")
    plain = {"input": [], "output": [], "script": "echo the word is $WORD"}

    def with_word(word: str, *clusters: str, **more: Any) -> dict[str, Any]:
        secrets = {"refresh_token": hansa.refresh_token("alice"), "WORD": word}
        members = [member(cluster, f"{name}-{cluster}") for cluster in clusters]
        environment = {"variables": {}, "secrets": secrets}
        return {**stories.federated(name, members, **more), **plain, "environment": environment}

    stories.create(alice, with_word("first", "visby"))
    assert alice.delete(f"/system/services/{name}", params={"workers": "keep"}).status_code == 204
    visby = of_alice(hansa, "visby")
    before = definition_of(visby, f"{name}-visby")
    answer = alice.post("/system/services", json=with_word("second", "visby", "tallinn", image="alpine"))
    assert answer.status_code == 502, answer.text
    assert definition_of(visby, f"{name}-visby") == before
    job = stories.submit(visby, f"{name}-visby")
    assert stories.ended(visby, job)["status"] == "Succeeded"
    assert "the word is first" in visby.get(f"/system/logs/{name}-visby/{job}").text
    assert visby.delete(f"/system/services/{name}-visby").status_code == 204


def test_an_untrusted_endpoint_is_refused_before_anything_is_sent(
    hansa: Federation, alice: httpx.Client, rogue: Listener
) -> None:
    name = fresh("lured")
    for clusters in ({"visby": {"endpoint": rogue.url}}, {"narva": {"endpoint": rogue.url}}):
        members = [member(next(iter(clusters)), f"{name}-x"), member("riga", f"{name}-riga")]
        lure = stories.federated(name, members, token=hansa.refresh_token("alice"), clusters=clusters)
        answer = alice.post("/system/services", json=lure)
        assert answer.status_code == 403, answer.text
        assert "not trusted" in answer.text or "is registered at" in answer.text
    assert rogue.visits == []
    assert absent(of_alice(hansa, "riga"), f"{name}-riga")


def test_a_redirect_leads_nowhere(
    hansa: Federation, alice: httpx.Client, rogue: Listener, web: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "redirect_to", rogue.url)
    name = fresh("turned")
    clusters = {"narva": {"endpoint": web.url}}
    lure = stories.federated(name, [member("narva", name)], token=hansa.refresh_token("alice"), clusters=clusters)
    answer = alice.post("/system/services", json=lure)
    assert answer.status_code in (401, 502), answer.text
    assert web.visits
    assert rogue.visits == []
    assert absent(alice, name)
