"""What a bucket holds cannot keep it from being removed, and a removal that does not end keeps nothing else."""

from datetime import UTC, datetime, timedelta

import httpx
import pytest

from journeys.conftest import FreshName, signing_in
from journeys.objects import store_of
from journeys.test_full_buckets import denied
from journeys.waiting import eventually
from real.identity_provider import IdentityProvider
from real.manager import StartManager, trusting

ODD = ("a\x01b", "d\x1f/x", "a\ufffe", "a\uffff")  # XML has no such characters


def test_a_bucket_goes_whatever_its_objects_are_called(alice: httpx.Client, fresh_name: FreshName) -> None:
    name = fresh_name("odd")
    for _ in range(2):  # and the name is free again
        assert alice.post("/system/buckets", json={"bucket_name": name}).status_code == 201
        hers = store_of(alice)
        for key in ODD:
            hers.put_object(Bucket=name, Key=key, Body=b"")
        assert alice.delete(f"/system/buckets/{name}").status_code == 204
        assert alice.get(f"/system/buckets/{name}").status_code == 404


def test_a_service_goes_with_its_bucket_whatever_is_in_it(alice: httpx.Client, fresh_name: FreshName) -> None:
    name = fresh_name("odd-service")
    service = {
        "name": name, "image": "debian", "memory": "64Mi", "script": "true",
        "output": [{"storage_provider": "minio", "path": f"{name}/out"}],
    }  # fmt: skip
    for _ in range(2):
        assert alice.post("/system/services", json=service).status_code == 201
        hers = store_of(alice)
        for key in ODD:
            hers.put_object(Bucket=name, Key=key, Body=b"")
        assert alice.delete(f"/system/services/{name}").status_code == 204
        assert alice.get(f"/system/buckets/{name}").status_code == 404


@pytest.mark.parametrize("restarted", [False, True])
def test_rights_end_while_a_bucket_cannot_be_removed(
    start_manager: StartManager, sign_in_provider: IdentityProvider, restarted: bool
) -> None:
    manager = start_manager(trusting(sign_in_provider))
    admin, person = manager.admin, signing_in(manager, sign_in_provider)
    alice, bob = person("alice"), person("bob")
    shared = {"bucket_name": "shared", "visibility": "restricted", "allowed_users": ["bob@test"]}
    assert alice.post("/system/buckets", json=shared).status_code == 201
    hers, his = store_of(alice), store_of(bob)
    hers.put_object(Bucket="shared", Key="k", Body=b"x")
    assert not denied(lambda: his.get_object(Bucket="shared", Key="k"))
    root, later = store_of(admin), datetime.now(UTC) + timedelta(hours=1)
    root.create_bucket(Bucket="a-locked", ObjectLockEnabledForBucket=True)
    root.put_object(Bucket="a-locked", Key="k", ObjectLockMode="COMPLIANCE", ObjectLockRetainUntilDate=later)
    assert admin.post("/system/buckets", json={"bucket_name": "a-locked"}).status_code == 201
    assert admin.delete("/system/buckets/a-locked").status_code == 403
    if restarted:
        manager.restart()
    tries = manager.log.count("could not be removed")
    eventually(lambda: manager.log.count("could not be removed") > tries, what="another round of the repair")
    assert alice.put("/system/buckets", json={"bucket_name": "shared"}).status_code == 204
    assert denied(lambda: his.get_object(Bucket="shared", Key="k"))
    assert alice.put("/system/buckets", json=shared).status_code == 204
    assert not denied(lambda: his.get_object(Bucket="shared", Key="k"))
