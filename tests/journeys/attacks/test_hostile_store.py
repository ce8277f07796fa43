"""A tenant's own store tries to keep a job for ever: it ends, in words, and later than its script would have had to."""

from journeys.waiting import run_job
from real.hostile_store import hostile_store, page
from real.identity_provider import IdentityProvider
from real.manager import StartManager, trusting


def test_copying_takes_no_longer_than_the_cluster_gives_any_job(
    start_manager: StartManager, sign_in_provider: IdentityProvider
) -> None:
    """A service's own limit is for its script: where it is shorter, files may still come."""
    with hostile_store(lambda number: page(["data/endless"], None)) as store:
        allowed = {"egress.allow": [store.url.removeprefix("http://")], "jobs.time_limit": 2}
        own = start_manager({**trusting(sign_in_provider), **allowed})
        alice = own.bearer(sign_in_provider.token("alice"))
        definition = {
            "name": "patient",
            "image": "debian",
            "memory": "64Mi",
            "script": "true",
            "annotations": {"hansa/time-limit": "1s"},
            "mount": {"storage_provider": "s3.evil", "path": "bucket/data"},
            "storage_providers": {"s3": {"evil": {"endpoint": store.url, "access_key": "AK", "secret_key": "SK"}}},
        }
        assert alice.post("/system/services", json=definition).status_code == 201
        log = run_job(alice, "patient")
        assert "its files were not moved within 2 s, the longest time that this cluster gives any job" in log
        assert store.left.wait(20), "the stager goes on"
