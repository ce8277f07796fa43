"""Does work go where there is room, once, and does its origin know all about it?"""

import base64
import uuid
from typing import Any

import httpx
import pytest

from journeys.events import minio_event
from journeys.federation import stories
from journeys.federation.conftest import Deploy
from journeys.federation.stories import ended, eventually, fresh, member, outputs, story_of, submit
from real.federation import Federation
from real.listener import Listener
from real.netns import Network

COPY = 'cat "$INPUT_FILE_PATH" > "$TMP_OUTPUT_DIR/copy"'
ALL = ("visby", "riga", "tallinn")


def everywhere(name: str) -> list[dict[str, Any]]:
    return [member(cluster, f"{name}-{cluster}", number) for number, cluster in enumerate(ALL)]


def test_a_job_without_room_runs_at_a_member_and_its_origin_tells_all(
    hansa: Federation, alice: httpx.Client, deploy: Deploy
) -> None:
    name = fresh("away")
    deploy(everywhere(name), name=name)
    job = submit(alice, name, b"what the job reads")
    told = ended(alice, job)
    assert told["status"] == "Succeeded", told
    assert told["delegation"]["cluster_id"] == "visby"
    assert told["delegation"]["decision"]["policy"] == "static"
    assert told["started"] is not None
    assert outputs(hansa, alice, name) == {"out/where": f"by {name}-visby\n".encode()}
    listed = alice.get(f"/system/logs/{name}").json()["jobs"][job]
    assert listed["status"] == "Succeeded"
    assert "what the job reads" in alice.get(f"/system/logs/{name}/{job}").text
    # the member shows the same job, under the same name
    there = hansa.user("alice", "visby").get(f"/v1/jobs/{job}").json()
    assert there["status"] == "Succeeded"


def test_an_uploaded_file_is_read_from_its_origin(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    name = fresh("upload")
    deploy(everywhere(name), name=name, script=COPY)
    content = bytes(range(256)) * 40
    hansa.store(alice).put_object(Bucket=name, Key="in/picture.png", Body=content)

    def job() -> str:
        return next(iter(alice.get(f"/system/logs/{name}").json()["jobs"]), "")

    told = ended(alice, eventually(job, what="a job for the upload"))
    assert told["status"] == "Succeeded", told
    assert outputs(hansa, alice, name) == {"out/copy": content}


def test_the_admins_federation_delegates_by_the_services_token(
    hansa: Federation, alice: httpx.Client, deploy: Deploy
) -> None:
    name = fresh("admins")
    admin = hansa["lubeck"].admin
    clusters = hansa.credentials("visby", "riga")
    deploy(everywhere(name)[:2], client=admin, name=name, token="", clusters=clusters, script=COPY)
    token = stories.definition_of(admin, name)["token"]
    job = submit(hansa["lubeck"].bearer(token), name, b"for the admin")
    told = ended(admin, job)
    assert told["status"] == "Succeeded", told
    assert outputs(hansa, admin, name) == {"out/copy": b"for the admin"}


@pytest.mark.parametrize(
    ("body", "read"),
    [
        (bytes(range(256)), bytes(range(256))),
        (base64.b64encode(b"\x00\xffbinary"), b"\x00\xffbinary"),
        (b'{"just": "json"}', b'{"just": "json"}'),
        (b"", b""),
        ("Grüße\n".encode(), "Grüße\n".encode()),
    ],
    ids=["bytes", "base64", "json", "nothing", "text"],
)
def test_every_body_survives(hansa: Federation, alice: httpx.Client, deploy: Deploy, body: bytes, read: bytes) -> None:
    name = fresh("body")
    deploy([member("visby", f"{name}-v")], name=name, script=COPY)
    told = ended(alice, submit(alice, name, body))
    assert told["status"] == "Succeeded", told
    assert told["delegation"]["cluster_id"] == "visby"
    assert outputs(hansa, alice, name) == {"out/copy": read}


def test_a_job_given_to_a_worker_leaves_its_outputs_where_the_federation_keeps_them(
    hansa: Federation, alice: httpx.Client, deploy: Deploy
) -> None:
    name = fresh("worker")
    deploy([member("visby", f"{name}-v")], name=name, topology="mesh", script=COPY)
    there = hansa.user("alice", "visby")
    token = stories.definition_of(there, f"{name}-v")["token"]
    told = ended(there, submit(there, f"{name}-v", b"by her own token"))
    assert told["status"] == "Succeeded", told
    assert outputs(hansa, alice, name) == {"out/copy": b"by her own token"}
    told = ended(there, submit(hansa["visby"].bearer(token), f"{name}-v", b"by the service's token"))
    assert told["status"] == "Succeeded", told
    assert outputs(hansa, alice, name) == {"out/copy": b"by the service's token"}
    assert "received" not in told


def test_a_worker_of_a_star_has_no_credentials_of_its_own(
    hansa: Federation, alice: httpx.Client, deploy: Deploy
) -> None:
    name = fresh("star")
    deploy([member("visby", f"{name}-v")], name=name, script=COPY)
    there = hansa.user("alice", "visby")
    assert ended(there, submit(there, f"{name}-v", b"by her own token"))["status"] == "Succeeded"
    assert outputs(hansa, alice, name) == {"out/copy": b"by her own token"}
    token = stories.definition_of(there, f"{name}-v")["token"]
    refused = hansa["visby"].bearer(token).post(f"/job/{name}-v", content=b"nobody's")
    assert refused.status_code == 409
    assert "sign in with a token of your own, or submit the job at lubeck" in refused.text


def test_static_goes_by_priority_and_to_the_next_when_one_is_away(
    hansa: Federation, alice: httpx.Client, deploy: Deploy
) -> None:
    name = fresh("static")
    deploy(
        [member("riga", f"{name}-r", 5), member("tallinn", f"{name}-t", 1), member("visby", f"{name}-v", 3)], name=name
    )
    assert ended(alice, submit(alice, name))["delegation"]["cluster_id"] == "tallinn"
    hansa.gates["tallinn"].shut("refuse")
    told = ended(alice, submit(alice, name))
    assert told["delegation"]["cluster_id"] == "visby"
    assert f"tallinn/{name}-t" in told["delegation"]["decision"]["refused"]


def test_random_hits_at_least_two_clusters_in_ten(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    name = fresh("random")
    deploy(everywhere(name), name=name, delegation="random")
    jobs = [submit(alice, name) for _ in range(10)]
    went = [ended(alice, job)["delegation"]["cluster_id"] for job in jobs]
    assert len(set(went)) >= 2, went


def test_load_based_asks_only_clusters_that_fit(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    name = fresh("load")
    deploy(everywhere(name), name=name, delegation="load-based", cpu="2")  # riga has one core

    def why_not_riga() -> str:
        told = ended(alice, submit(alice, name))
        assert told["delegation"]["cluster_id"] in ("visby", "tallinn"), told
        return str(told["delegation"]["decision"]["refused"][f"riga/{name}-riga"])

    # If it did not answer others in time just now, that is the reason for a while.
    eventually(lambda: "cpu" in why_not_riga(), what="refused for what it has")
    assert all("cpu" in why_not_riga() for _ in range(3))


def test_a_replica_that_is_gone_does_not_count_against_its_cluster(
    hansa: Federation, alice: httpx.Client, deploy: Deploy
) -> None:
    """Two services of one owner, each with a replica in the same cluster."""
    gone, whole = fresh("gone"), fresh("whole")
    for name in (gone, whole):
        often = {"rescheduler_threshold": 1}
        deploy([member("riga", f"{name}-r")], name=name, delegation="load-based", federation=often)
    there = hansa.user("alice", "riga")
    assert there.delete(f"/system/services/{gone}-r").status_code == 204
    stories.create(there, {"name": f"{gone}-r", "image": "debian", "script": "true", "memory": "64Mi"})  # not ours now
    waits = submit(alice, gone)
    eventually(lambda: "times in a row" in story_of(alice, waits)["reason"], what="left alone for a while")
    goes = submit(alice, whole)
    told = story_of(alice, goes)
    while told["status"] != "Succeeded":  # pytest's own limit ends it
        assert "in a row" not in told["reason"], told
        told = story_of(alice, goes)
    assert told["delegation"]["cluster_id"] == "riga"


def test_topsis_ranks_by_all_criteria_and_says_so(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    name = fresh("topsis")
    deploy(everywhere(name), name=name, delegation="topsis")
    told = all_known(alice, name)
    scores = told["delegation"]["decision"]["scores"]
    best = min(scores, key=lambda key: scores[key]["priority"])
    assert told["delegation"]["decision"]["chosen"] == best
    assert scores[f"riga/{name}-riga"]["closeness"] < scores[best]["closeness"]  # one core against many


def all_known(client: httpx.Client, name: str) -> dict[str, Any]:
    """The story of a job for which every member was ranked. A decision does not wait for the last member that was never
    asked before; a later one knows it."""

    def decided() -> dict[str, Any]:
        told = ended(client, submit(client, name))
        return told if len(told["delegation"]["decision"]["scores"]) == len(ALL) else {}

    told = eventually(decided, what="a decision that knows all")
    assert set(told["delegation"]["decision"]["scores"]) == {f"{cluster}/{name}-{cluster}" for cluster in ALL}
    return told


def test_topsis_orders_as_computed_by_hand(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    """Cores are as 4 : 0 : 3 and memory as 0 : 4 : 3, so each column's norm is 5. With weights 20 and 15 they become

            cores  memory  to the best (16, 12)  to the worst (0, 0)  closeness
    visby      16       0           12                   16            16 / 28
    riga        0      12           16                   12            12 / 28
    tallinn    12       9            5                   15            15 / 20
    """
    name = fresh("table")
    others = dict.fromkeys(("latency", "nodes", "mean_seconds", "pending"), 0)
    weights = {**others, "free_cpu": 20, "free_memory": 15}
    deploy(everywhere(name), name=name, delegation="topsis", federation={"weights": weights})
    told = all_known(alice, name)
    scores = told["delegation"]["decision"]["scores"]
    closeness = {cluster: scores[f"{cluster}/{name}-{cluster}"]["closeness"] for cluster in ALL}
    by_hand = {"visby": 16 / 28, "riga": 12 / 28, "tallinn": 15 / 20}
    assert closeness == pytest.approx(by_hand, abs=0.01)  # the nothings above are next to nothing
    assert sorted(ALL, key=lambda cluster: -closeness[cluster]) == ["tallinn", "visby", "riga"]
    assert told["delegation"]["cluster_id"] == "tallinn"


def test_no_policy_leaves_a_job_with_a_member_that_is_cut_off(hansa: Federation, net: Network, deploy: Deploy) -> None:
    """Each has seen tallinn well a moment ago, and may still choose it first."""
    bob, token = hansa.user("bob", "lubeck"), hansa.refresh_token("bob")
    names = {policy: fresh(policy) for policy in ("random", "load-based", "topsis")}
    for policy, name in names.items():
        cpu = "2" if policy == "load-based" else "0.2"  # riga has one core
        deploy(everywhere(name), client=bob, name=name, token=token, delegation=policy, cpu=cpu)
    before = [submit(bob, name) for name in names.values()]
    assert [ended(bob, job)["status"] for job in before] == ["Succeeded"] * len(before)
    net.cut("tallinn")
    jobs = [(policy, submit(bob, name)) for policy, name in names.items() for _ in range(3)]
    for policy, job in jobs:
        told = ended(bob, job)
        assert told["status"] == "Succeeded", told
        assert told["delegation"]["cluster_id"] in (("visby",) if policy == "load-based" else ("visby", "riga")), told


def test_a_job_that_fits_nowhere_waits_and_says_why(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    for policy in ("load-based", "static"):
        name = fresh("large")
        deploy(everywhere(name), name=name, delegation=policy, cpu="50000")
        job = submit(alice, name)

        def says_why(job: str = job, name: str = name) -> bool:
            told = story_of(alice, job)
            assert told["status"] == "Pending", told
            return all(f"{cluster}/{name}-{cluster}" in told["reason"] for cluster in ALL)

        eventually(says_why, what="a reason that names all members")


def test_a_job_is_offered_again_when_members_come_back(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    name = fresh("again")
    deploy([member("tallinn", f"{name}-t")], name=name, federation={"rescheduler_threshold": 1})
    hansa.gates["tallinn"].shut("refuse")
    job = submit(alice, name)
    eventually(lambda: "tallinn" in story_of(alice, job)["reason"], what="a first try")
    hansa.gates["tallinn"].open()
    assert ended(alice, job)["status"] == "Succeeded"


def test_a_waiting_job_starts_at_home_when_there_is_room(
    hansa: Federation, alice: httpx.Client, deploy: Deploy
) -> None:
    name = fresh("home")
    deploy([member("tallinn", f"{name}-t")], name=name, cpu="0.1", script=f"sleep 2; {stories.WHERE}")
    hansa.gates["tallinn"].shut("refuse")
    jobs = [submit(alice, name), submit(alice, name)]
    for job in jobs:
        told = ended(alice, job)
        assert told["status"] == "Succeeded", told
    assert outputs(hansa, alice, name) == {"out/where": f"by {name}\n".encode()}


def test_a_running_job_shows_its_log_and_ends_when_it_is_deleted(
    hansa: Federation, alice: httpx.Client, deploy: Deploy
) -> None:
    name = fresh("long")
    deploy([member("visby", f"{name}-v")], name=name, script="echo has begun; sleep 60")
    job = submit(alice, name)
    eventually(lambda: "has begun" in alice.get(f"/system/logs/{name}/{job}").text, what="a live log")
    eventually(lambda: alice.get(f"/system/logs/{name}").json()["jobs"][job]["status"] == "Running")
    assert alice.delete(f"/system/logs/{name}/{job}").status_code == 204
    told = ended(hansa.user("alice", "visby"), job, 15)
    assert told["status"] == "Failed"
    assert "origin" in told["reason"]


def test_a_failed_job_is_failed_at_its_origin_too(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    name = deploy([member("visby", fresh("v"))], script="echo no; exit 3")
    told = ended(alice, submit(alice, name))
    assert (told["status"], told["exit_code"]) == ("Failed", 3)


def test_the_same_job_twice_is_one_job(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    name = fresh("twice")
    deploy([member("visby", f"{name}-v")], name=name)
    visby = hansa.user("alice", "visby")
    job = f"{name}-{uuid.uuid4()}"
    headers = {"X-Delegated-Job-ID": job, "X-Delegated-From": "lubeck"}
    for _ in range(2):
        assert visby.post(f"/job/{name}-v", content=b"x", headers=headers).status_code == 201
    assert list(visby.get(f"/system/logs/{name}-v").json()["jobs"]) == [job]


def test_nobody_takes_over_another_users_job(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    """Whoever may start the service knows the name of a job, and brings a permit of their own. Only managers may."""
    name = fresh("taken")
    deploy([member("visby", f"{name}-v")], name=name, visibility="public", script=f"sleep 2; {stories.WHERE}")
    job = submit(alice, name, b"for alice only")
    eventually(lambda: story_of(alice, job)["phase"] == "away", what="away")
    permit = "ab" * 32
    headers = {"X-Delegated-Job-ID": job, "X-Hansa-Origin": "lubeck", "X-Hansa-Permit": permit}
    bob = hansa.user("bob", "visby")
    assert bob.post(f"/job/{name}-v", content=b"x", headers=headers).status_code == 403
    assert bob.post(f"/run/{name}-v", content=b"x", headers=headers).status_code == 403
    shown = {"Authorization": f"Permit {permit}"}
    assert hansa["visby"].anonymous.get(f"/v1/delegations/{job}/log", headers=shown).status_code == 404
    assert ended(alice, job)["status"] == "Succeeded"


def test_who_knows_the_name_of_a_deleted_job_gets_nothing_of_its_keys(
    hansa: Federation, alice: httpx.Client, deploy: Deploy
) -> None:
    """A job of alice's ran at visby, with keys to her data at lubeck. Bob gives one of his own the same name there."""
    name = fresh("known")
    deploy([member("visby", f"{name}-v")], name=name, script=COPY)
    hansa.store(alice).put_object(Bucket=name, Key="private/x", Body=b"alice's secret 7714")
    there, bob = hansa.user("alice", "visby"), hansa.user("bob", "visby")
    job = submit(there, f"{name}-v", b"by her own token")
    assert ended(there, job)["status"] == "Succeeded"
    assert there.delete(f"/system/logs/{name}-v/{job}").status_code == 204
    his = {"name": f"{name}-b", "image": "debian", "memory": "64Mi", "cpu": "0.1", "script": 'cat "$INPUT_FILE_PATH"'}
    stories.create(bob, his)
    try:
        event = minio_event(name, "private/x")
        answer = bob.post(f"/job/{his['name']}", json=event, headers={"X-Delegated-Job-ID": job})
        assert answer.status_code == 403, answer.text
        assert f"may not read bucket {name}" in answer.text
    finally:
        assert bob.delete(f"/system/services/{his['name']}").status_code == 204


def test_a_mesh_passes_a_job_on_but_never_in_a_circle(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    name = fresh("mesh")
    deploy(
        [member("riga", f"{name}-r", 0), member("visby", f"{name}-v", 5)], name=name, topology="mesh", cpu="2"
    )  # too large for lubeck and for riga
    told = ended(alice, submit(alice, name))
    assert told["status"] == "Succeeded", told
    assert told["delegation"]["cluster_id"] == "riga"
    assert outputs(hansa, alice, name) == {"out/where": f"by {name}-v\n".encode()}
    there = story_of(hansa.user("alice", "riga"), told["name"])
    assert there["delegation"]["cluster_id"] == "visby"

    small = fresh("ring")
    deploy([member("riga", f"{small}-r")], name=small, topology="mesh", cpu="2")  # nowhere to go but back
    job = submit(alice, small)
    eventually(lambda: f"riga/{small}-r" in story_of(alice, job)["reason"], what="a refusal")
    assert story_of(alice, job)["status"] == "Pending"


def test_a_job_that_went_in_a_circle_or_too_far_is_refused(
    hansa: Federation, alice: httpx.Client, deploy: Deploy
) -> None:
    name = fresh("hops")
    deploy([member("visby", f"{name}-v")], name=name)
    visby = hansa.user("alice", "visby")
    handing = hansa["visby"].bearer(stories.definition_of(visby, f"{name}-v")["token"])
    for path in ("lubeck,visby", "lubeck,a,b,c,d"):
        job = f"{name}-{uuid.uuid4()}"
        headers = {"X-Delegated-Job-ID": job, "X-Hansa-Origin": "lubeck", "X-Hansa-Permit": "ab" * 32}
        answer = handing.post(f"/job/{name}-v", content=b"x", headers={**headers, "X-Hansa-Path": path})
        assert answer.status_code == 409, answer.text
        assert visby.get(f"/v1/jobs/{job}").status_code == 404


def test_a_hung_member_keeps_no_job(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    name = fresh("hung")
    deploy(everywhere(name), name=name, delegation="random")
    hansa.gates["tallinn"].shut("hang")
    jobs = [submit(alice, name) for _ in range(4)]
    for job in jobs:
        told = ended(alice, job)
        assert told["status"] == "Succeeded", told
        assert told["delegation"]["cluster_id"] in ("visby", "riga")


def test_an_endpoint_gets_the_event_and_none_of_our_credentials(
    hansa: Federation, alice: httpx.Client, deploy: Deploy, web: Listener, rogue: Listener
) -> None:
    def endpoint(url: str) -> dict[str, Any]:
        return {"type": "endpoint", "url": url, "headers": {"X-Key": "from the user"}, "priority": 0}

    name = deploy([endpoint(f"{web.url}/hook")])
    told = ended(alice, submit(alice, name, b"an event"))
    assert told["status"] == "Succeeded", told
    visit = next(one for one in web.visits if one.path == "/hook")
    assert (visit.method, visit.body, visit.headers["x-key"]) == ("POST", b"an event", "from the user")
    assert "authorization" not in visit.headers

    lured = deploy([endpoint(f"{rogue.url}/hook")])
    job = submit(alice, lured)
    eventually(lambda: "may not call" in story_of(alice, job)["reason"], what="a refusal")
    assert rogue.visits == []


def test_jobs_never_see_the_refresh_token(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    token = hansa.refresh_token("alice")
    secrets = {"refresh_token": token, "WORD": "sesame"}
    name = deploy(
        [member("visby", fresh("v"))],
        topology="mesh",
        script="env",
        environment={"variables": {}, "secrets": secrets},
    )
    job = submit(alice, name)
    assert ended(alice, job)["status"] == "Succeeded"
    log = alice.get(f"/system/logs/{name}/{job}").text
    assert "WORD=sesame" in log  # the user's own secret travels with the service
    assert token not in log
    assert "refresh_token" not in log
    assert "group-key" not in log
