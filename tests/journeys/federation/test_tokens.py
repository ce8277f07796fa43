"""Do federations live on while access tokens last seconds, refresh tokens are replaced, and some are revoked?"""

import time
from typing import Any

import httpx
import pytest

from journeys.federation.conftest import ACCESS_SECONDS, Deploy
from journeys.federation.stories import absent, ended, eventually, fresh, member, story_of, submit
from real.federation import Federation
from real.netns import Network


def standing(client: httpx.Client, service: str) -> dict[str, object]:
    answer = client.get(f"/v1/services/{service}/credentials")
    assert answer.status_code == 200, answer.text
    told: dict[str, object] = answer.json()
    return told


def test_a_federation_lives_on_over_many_lives_of_an_access_token(
    hansa: Federation, alice: httpx.Client, deploy: Deploy
) -> None:
    """Each time visby has lost its worker, which takes a token of alice to make again."""
    name = fresh("lives")
    deploy([member("visby", f"{name}-v")], name=name)
    there = hansa.user("alice", "visby")
    for _ in range(3):
        assert ended(alice, submit(alice, name))["status"] == "Succeeded"
        time.sleep(ACCESS_SECONDS / 2 + 0.5)  # the lifetime itself is what is tried here
        assert there.delete(f"/system/services/{name}-v").status_code == 204
        eventually(lambda: not absent(there, f"{name}-v"), what="made again")
    assert standing(alice, name)["state"] == "ok"
    assert standing(alice, name)["rotates"] is True
    actions = [one["action"] for one in alice.get(f"/v1/services/{name}/audit").json()["entries"]]
    assert actions.count("token.rotated") >= 2, actions


def test_members_of_a_mesh_do_not_burn_each_others_tokens(
    hansa: Federation, alice: httpx.Client, deploy: Deploy
) -> None:
    """riga passes jobs on to visby while lubeck delegates too; the provider replaces the token with every use."""
    name = fresh("mesh")
    deploy([member("riga", f"{name}-r", 0), member("visby", f"{name}-v", 5)], name=name, topology="mesh", cpu="2")
    for _ in range(3):
        assert ended(alice, submit(alice, name))["status"] == "Succeeded"
        time.sleep(ACCESS_SECONDS / 2)
    assert standing(alice, name)["state"] == "ok"
    assert standing(hansa.user("alice", "riga"), f"{name}-r")["state"] == "ok"


@pytest.mark.deep
def test_a_member_cut_off_from_its_coordinator_passes_jobs_on(hansa: Federation, net: Network, deploy: Deploy) -> None:
    """Jobs of riga are too large for itself and go on to visby, below it, by a token of visby's worker: nobody has to
    be asked for one of a person. They have no data, which would lie beyond the cut too."""
    bob, riga = hansa.user("bob", "lubeck"), hansa.user("bob", "riga")
    name = fresh("keeper")
    members = [member("riga", f"{name}-r"), member("visby", f"{name}-v", parent="riga")]
    plain: dict[str, Any] = {"input": [], "output": [], "script": "echo well"}
    deploy(members, client=bob, name=name, token=hansa.refresh_token("bob"), topology="tree", cpu="2", **plain)
    net.cut_pair("lubeck", "riga")
    told = ended(riga, submit(riga, f"{name}-r"))
    assert (told["status"], told["delegation"]["cluster_id"]) == ("Succeeded", "visby"), told
    assert standing(bob, name)["state"] == "ok"


def test_without_a_token_jobs_go_on_but_no_worker_is_made_again(
    hansa: Federation, alice: httpx.Client, deploy: Deploy
) -> None:
    name = fresh("revoked")
    deploy([member("visby", f"{name}-v")], name=name, delegation="random")  # which needs the member's status
    there = hansa.user("alice", "visby")
    assert alice.delete(f"/v1/services/{name}/credentials").status_code == 200
    assert standing(alice, name)["state"] == "none"
    time.sleep(ACCESS_SECONDS)  # what was exchanged before the revocation is over now
    assert ended(alice, submit(alice, name))["status"] == "Succeeded"
    assert there.delete(f"/system/services/{name}-v").status_code == 204
    job = submit(alice, name)
    eventually(lambda: f"visby/{name}-v" in story_of(alice, job)["reason"], what="a reason")
    now = alice.get(f"/system/services/{name}").json()
    now["environment"]["secrets"] = {"refresh_token": hansa.refresh_token("alice")}
    assert alice.put("/system/services", json=now).status_code == 204
    assert ended(alice, job)["status"] == "Succeeded"
    assert standing(alice, name)["state"] == "ok"


def test_a_token_that_others_used_up_is_said(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    token = hansa.refresh_token("alice")
    name = fresh("used")
    deploy([member("visby", f"{name}-v")], name=name, token=token)
    assert hansa.provider is not None
    hansa.provider.burn(token, hansa.realm)
    time.sleep(ACCESS_SECONDS)
    assert hansa.user("alice", "visby").delete(f"/system/services/{name}-v").status_code == 204
    eventually(lambda: standing(alice, name)["state"] == "expired-or-revoked", what="told")
    assert token not in alice.get(f"/v1/services/{name}/credentials").text
