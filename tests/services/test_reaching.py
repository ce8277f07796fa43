"""What a run may touch follows from rights, and its plan never goes beyond."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.orders import order
from hansa.drivers.runs import plans
from hansa.drivers.runs.stager.plan import Store
from hansa.kernel.errors import Forbidden
from hansa.services import RunOrder, StorageIO, events, reach_of
from hansa.storage import Reach

OWN = Store("s3", "http://own", access_key="lent")
BUCKETS = ("alices", "bobs", "shared")
RIGHTS = {"alice": {"alices", "shared"}, "bob": {"bobs", "shared"}}
buckets = st.sampled_from(BUCKETS)
folders = st.sampled_from(["in", "out", "out/deep", "data"])
providers = st.sampled_from(["minio.default", "minio", "MinIO.default", "minio.far", "s3.far", "webdav.site"])
people = st.sampled_from(["alice", "bob"])


def may_use(user: str, bucket: str) -> bool:
    return bucket in RIGHTS[user]


@st.composite
def wishes(draw: st.DrawFn) -> RunOrder:
    def io(kind: Any) -> StorageIO:
        return StorageIO(storage_provider=draw(kind), path=f"{draw(buckets)}/{draw(folders)}")

    event = draw(st.sampled_from([b"", b"aGVsbG8=", None, "wrapped", "far"]))
    input = (StorageIO(storage_provider="minio.far", path="alices/in"),) if event == "far" else ()
    if not isinstance(event, bytes):
        told = events.minio_event(draw(buckets), f"{draw(folders)}/x", size=1, etag="e", at=1.0)
        outer = {"storage_provider": "minio.far" if event == "far" else "minio.default", "event": told.decode()}
        event = told if event is None else json.dumps(outer).encode()
    owner = draw(people)
    keys = {"endpoint": "http://far", "access_key": "AK", "secret_key": "SK"}
    default = draw(st.sampled_from([{}, {"minio.default": {"access_key": "hidden"}}, {"minio.default": keys}]))
    made = order(
        "true",
        event=event,
        owner=owner,
        input=input,
        output=tuple(io(providers) for _ in range(draw(st.integers(0, 3)))),
        mount=io(st.sampled_from(["minio.default", "minio.far"])) if draw(st.booleans()) else StorageIO(),
        bucket_list=tuple(draw(st.sets(buckets))),
        annotations=draw(st.sampled_from([{}, {"oscar.grycap/federation-worker": "true"}])),
        storage_providers={"minio": {"far": {"endpoint": "http://far"}}, "s3": {"far": {}}, "webdav": {"site": {}}},
        providers={"minio.far": keys, "s3.far": keys, "webdav.site": {"hostname": "dav"}, **default},
    )
    return replace(made, reach=Reach())


@given(wish=wishes(), submitter=people)
def test_a_plan_stays_within_its_reach_and_a_reach_within_rights(wish: RunOrder, submitter: str) -> None:
    try:
        reach = reach_of(wish, submitter, may_use)
    except Forbidden:
        return
    assert all(may_use(submitter, bucket) for bucket, _ in reach.read)
    assert all(may_use(wish.service.owner, bucket) for bucket, _ in reach.write | reach.share)
    plan = plans.plan(replace(wish, reach=reach), OWN)
    ours = {number for number, store in enumerate(plan.stores) if store is OWN}
    if plan.input is not None and plan.input.store in ours:
        assert reach.reads(plan.input.bucket, plan.input.key)
    for output in plan.outputs:
        assert output.store not in ours or reach.writes(output.bucket, f"{output.folder}/any/file")
    if plan.mount is not None and plan.mount.store in ours:
        assert reach.lists(plan.mount.bucket, f"{plan.mount.folder}/")


def test_whoever_starts_a_job_must_be_able_to_read_its_input() -> None:
    job = order("true", event=events.minio_event("bobs", "in/x", size=1, etag="e", at=1.0), owner="bob")
    assert reach_of(job, "bob", may_use).reads("bobs", "in/x")
    with pytest.raises(Forbidden, match="bobs"):
        reach_of(job, "alice", may_use)


def test_outputs_are_a_matter_of_the_services_owner() -> None:
    out = (StorageIO(storage_provider="minio.default", path="bobs/out"),)
    job = order("true", owner="bob", output=out)
    assert reach_of(job, "alice", may_use).writes("bobs", "out/x")
    with pytest.raises(Forbidden, match="owner of this service"):
        reach_of(order("true", owner="alice", output=out), "bob", may_use)


def test_a_reach_tells_when_one_of_the_rights_behind_it_is_lost() -> None:
    job = order(
        "true",
        event=events.minio_event("input", "in/x", size=1, etag="e", at=1.0),
        owner="bob",
        output=(StorageIO(storage_provider="minio.default", path="output/out"),),
        mount=StorageIO(storage_provider="minio.default", path="mounted/data"),
    )
    rights = {("alice", "input"), ("bob", "output"), ("bob", "mounted")}
    now = set(rights)
    reach = reach_of(job, "alice", lambda uid, bucket: (uid, bucket) in now)
    reach.require_rights()
    for uid, bucket in rights:
        now.remove((uid, bucket))
        with pytest.raises(Forbidden, match=bucket):
            reach.require_rights()
        now.add((uid, bucket))


def test_nothing_is_written_to_a_bucket_that_is_not_the_one_that_was_meant() -> None:
    place = StorageIO(storage_provider="minio.default", path="shared/out")
    for job in (order("true", owner="alice", output=(place,)), order("true", owner="alice", mount=place)):
        assert reach_of(job, "alice", may_use, changed_hands=lambda bucket: bucket == "bobs")
        with pytest.raises(Forbidden, match="somebody else's"):
            reach_of(job, "alice", may_use, changed_hands=lambda bucket: bucket == "shared")
    read = order("true", event=events.minio_event("shared", "in/x", size=1, etag="e", at=1.0), owner="alice")
    assert reach_of(read, "bob", may_use, changed_hands=lambda bucket: True).reads("shared", "in/x")


def test_without_the_own_store_a_plan_that_needs_it_is_refused() -> None:
    job = order("true", output=(StorageIO(storage_provider="minio.default", path="alices/out"),))
    with pytest.raises(Forbidden):
        plans.plan(job, None)
