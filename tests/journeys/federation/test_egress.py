"""Can a tenant of a federation borrow a manager's network: by a token, an event, or a store of a member?"""

import base64
import json
import uuid

import httpx

from journeys.events import minio_event
from journeys.federation import stories
from journeys.federation.conftest import Deploy
from journeys.federation.stories import fresh, member
from real.federation import Federation
from real.listener import Listener


def test_a_refresh_token_s_issuer_is_not_asked_unless_it_is_configured(
    hansa: Federation, alice: httpx.Client, rogue: Listener
) -> None:
    """Members are asked with what the token buys, so the manager tries to use it at once."""
    claims = {"iss": rogue.url, "sub": "alice", "azp": "client", "typ": "Offline", "exp": 4_000_000_000}
    middle = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    name = fresh("forged")
    lure = stories.federated(name, [member("visby", f"{name}-v")], token=f"e30.{middle}.c2ln")
    alice.post("/system/services", json=lure)
    admin = hansa["lubeck"].admin
    admin.post("/system/services", json={**lure, "name": f"{name}-a"})
    assert rogue.visits == []
    for made in (name, f"{name}-a"):
        admin.delete(f"/system/services/{made}")


def test_a_delegated_event_cannot_name_a_foreign_store(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    name = fresh("handed")
    deploy([member("visby", f"{name}-v")], name=name)
    visby = hansa.user("alice", "visby")
    handing = hansa["visby"].bearer(stories.definition_of(visby, f"{name}-v")["token"])
    event = json.dumps(minio_event(name, "in/x"))
    for given in ("minio.far", "riga", "s3.mine"):
        job = f"{name}-{uuid.uuid4()}"
        headers = {"X-Delegated-Job-ID": job, "X-Hansa-Origin": "lubeck", "X-Hansa-Permit": "ab" * 32}
        body = json.dumps({"storage_provider": given, "event": event}).encode()
        for door in ("job", "run"):
            answer = handing.post(f"/{door}/{name}-v", content=body, headers={**headers, "X-Hansa-Path": "lubeck"})
            assert answer.status_code == 400, answer.text
            assert "no input" in answer.text
        assert visby.get(f"/v1/jobs/{job}").status_code == 404


def test_a_cluster_s_own_id_does_not_open_other_ports_of_its_machine(
    hansa: Federation, alice: httpx.Client, rogue: Listener
) -> None:
    """A cluster may tell where its store is; a tenant who writes the same field may not."""
    name = fresh("borrowed")
    definition = {
        **stories.federated(name, [], token=""),
        "federation": None,
        "output": [{"storage_provider": "minio.visby", "path": "borrowed/out"}],
        "storage_providers": {"minio": {"visby": {"endpoint": rogue.url, "access_key": "a", "secret_key": "b"}}},
    }
    answer = alice.post("/system/services", json=definition)
    assert answer.status_code == 400, answer.text
    assert "storage_providers.minio.visby.endpoint" in answer.text
    assert rogue.visits == []
