"""People of two issuers in one federation: who is who is decided in each cluster, and nobody is taken for another."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from hansa.identity import qualified
from journeys.federation import stories
from journeys.federation.stories import absent, definition_of, fresh, member
from real import parts
from real.federation import CLIENT, Federation, federation
from real.identity_provider import AUDIENCE, IdentityProvider, identity_provider
from real.manager import PEOPLE

ALICE, BOB = "alice@test", "bob@test"


@pytest.fixture(scope="module")
def two_realms() -> Iterator[IdentityProvider]:
    parts.require("node")
    parts.require("npm")
    realms = {"test": {"rotate": False}, "second": {"rotate": False}}
    with identity_provider(realms=realms, users=PEOPLE) as running:
        yield running


@pytest.fixture(scope="module")
def mixed(two_realms: IdentityProvider) -> Iterator[Federation]:
    """Everybody trusts both realms; the plain subjects of lubeck and riga are those of `test`, visby's of `second`."""

    def trusting(*realms: str) -> dict[str, Any]:
        listed = [{"url": two_realms.issuer(one), "audience": AUDIENCE, "client_id": CLIENT} for one in realms]
        return {"oidc.issuers": listed}

    settings = {
        "lubeck": {**trusting("test", "second"), "jobs.cpu": "100m"},
        "riga": {**trusting("second", "test"), "oidc.home": two_realms.issuer("test")},
        "visby": trusting("second", "test"),
    }
    with federation("lubeck", "riga", "visby", provider=two_realms, settings=settings) as running:
        yield running


def namesake(mixed: Federation, login: str, cluster: str) -> httpx.Client:
    """Of the same subject in the other realm."""
    assert mixed.provider is not None
    return mixed[cluster].bearer(mixed.provider.token(login, "second"))


def test_a_job_goes_to_a_cluster_where_its_owner_has_another_uid(
    mixed: Federation, two_realms: IdentityProvider
) -> None:
    alice, there, name = mixed.user("alice", "lubeck"), mixed.user("alice", "visby"), fresh("abroad")
    token = mixed.refresh_token("alice")
    stories.create(alice, stories.federated(name, [member("visby", f"{name}-v")], token=token))
    assert definition_of(alice, name)["owner"] == ALICE
    assert definition_of(there, f"{name}-v")["owner"] == qualified(two_realms.issuer("test"), ALICE)
    for cluster, service in (("lubeck", name), ("visby", f"{name}-v")):
        other = namesake(mixed, "alice", cluster)
        assert other.get(f"/system/services/{service}").status_code == 403
        assert other.delete(f"/system/services/{service}").status_code == 403
        assert other.post(f"/job/{service}").status_code == 404
    job = stories.submit(alice, name)
    ended = stories.ended(alice, job)
    assert (ended["status"], ended["delegation"]["cluster_id"]) == ("Succeeded", "visby")
    assert namesake(mixed, "alice", "visby").get(f"/v1/jobs/{job}").status_code == 404
    assert namesake(mixed, "alice", "visby").get(f"/system/logs/{name}-v/{job}").status_code in (403, 404)
    assert stories.in_sync(alice, name)
    assert alice.delete(f"/system/services/{name}").status_code == 204
    assert absent(there, f"{name}-v")


def test_a_share_by_name_reaches_clusters_that_mean_the_same_person(mixed: Federation) -> None:
    alice, name = mixed.user("alice", "lubeck"), fresh("shared")
    mixed.user("bob", "riga")
    shared: dict[str, Any] = {"visibility": "restricted", "allowed_users": [BOB], "token": mixed.refresh_token("alice")}
    stories.create(alice, stories.federated(name, [member("riga", f"{name}-r")], **shared))
    assert mixed.user("bob", "riga").get(f"/system/services/{name}-r").status_code == 200
    assert namesake(mixed, "bob", "riga").get(f"/system/services/{name}-r").status_code == 403
    assert alice.delete(f"/system/services/{name}").status_code == 204


def test_it_does_not_reach_one_that_means_somebody_else(mixed: Federation) -> None:
    alice, name = mixed.user("alice", "lubeck"), fresh("mistaken")
    shared: dict[str, Any] = {"visibility": "restricted", "allowed_users": [BOB], "token": mixed.refresh_token("alice")}
    both = [member("riga", f"{name}-r"), member("visby", f"{name}-v")]
    answer = alice.post("/system/services", json=stories.federated(name, both, **shared))
    assert answer.status_code == 502
    assert "home issuer is another one" in answer.text
    assert absent(alice, name)
    assert absent(mixed.user("alice", "riga"), f"{name}-r")
    assert absent(mixed.user("alice", "visby"), f"{name}-v")


def test_nor_by_a_later_change(mixed: Federation) -> None:
    alice, name = mixed.user("alice", "lubeck"), fresh("later")
    private = stories.federated(name, [member("visby", f"{name}-v")], token=mixed.refresh_token("alice"))
    stories.create(alice, private)
    change = {**private, "visibility": "restricted", "allowed_users": [BOB]}
    assert "home issuer is another one" in alice.put("/system/services", json=change).text
    assert namesake(mixed, "bob", "visby").get(f"/system/services/{name}-v").status_code == 403
    assert namesake(mixed, "bob", "visby").post(f"/job/{name}-v").status_code == 404
    assert alice.delete(f"/system/services/{name}").status_code == 204
