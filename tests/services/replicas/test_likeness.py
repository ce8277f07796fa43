"""Is a worker as its member shows it told apart from one that somebody changed, and from nothing else?"""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hansa.drivers.oscar import definitions
from hansa.services import Record, Rules, Service, secret_parts, validation, wire_view
from hansa.services.replicas import MemberKeys, likeness, topology

PROVIDER = {"endpoint": "https://s3.lubeck", "verify": True, "access_key": "hidden", "region": "us-east-1"}
THEIRS = {**PROVIDER, "endpoint": "https://s3.visby"}
SECRETS = {
    "environment.secrets.WORD": "users-own",
    "environment.secrets.refresh_token": "r3fresh",
    "environment.secrets.hansa.group-key": "gr0up",
    "storage_providers.s3.far.secret_key": "k3y",
}
PLAIN: dict[str, Any] = {
    "name": "gray",
    "cluster_id": "lubeck",
    "cpu": "500m",
    "memory": "128Mi",
    "image": "debian",
    "script": "echo one\r\necho two\r\n",
    "token": "ab" * 32,
    "federation": {
        "topology": "star",
        "delegation": "random",
        "members": [
            {"type": "oscar", "cluster_id": "visby", "service_name": "gray-v", "headers": {"X-Key": "k"}},
            {"type": "oscar", "cluster_id": "riga", "service_name": "gray-r", "priority": 3},
            {"type": "endpoint", "url": "https://hook.example.org", "headers": {"X-Key": "k"}},
        ],
    },
    "clusters": {"visby": {"endpoint": "https://v", "auth_user": "admin", "auth_password": "pw", "ssl_verify": True}},
    "environment": {"variables": {"A": "1"}, "secrets": {"WORD": "", "refresh_token": ""}},
    "input": [{"storage_provider": "minio", "path": "in"}],
    "output": [{"storage_provider": "minio.default", "path": "/gray/out/"}],
    "storage_providers": {"s3": {"far": {"region": "eu", "access_key": "a", "secret_key": ""}}},
    "annotations": {"mine": "yes"},
    "labels": {"colour": "green"},
    "vo": "vo-test",
    "log_level": "debug",
}
RICH: dict[str, dict[str, Any]] = {
    "star": {},
    "mesh": {"federation": {**PLAIN["federation"], "topology": "mesh", "weights": {"visby": 3}}},
    "tree": {
        "federation": {
            "topology": "tree",
            "members": [
                {"type": "oscar", "cluster_id": "visby", "service_name": "gray-v"},
                {"type": "oscar", "cluster_id": "riga", "service_name": "gray-r", "parent": "visby"},
            ],
        }
    },
    "bare": {"input": [], "output": [], "environment": {}, "annotations": {}, "clusters": {}, "storage_providers": {}},
    "exposed": {"expose": {"api_port": [80], "min_scale": 1, "max_scale": 3, "set_auth": True}},
    "volume": {"volume": {"size": "1Gi", "mount_path": "/data"}},
    "isolated": {"isolation_level": "USER", "visibility": "restricted", "allowed_users": ["bob@test", " bob@test "]},
    "mounted": {"mount": {"storage_provider": "minio", "path": "shelf/books"}, "synchronous": {"max_scale": 2}},
}


def worker(**changes: Any) -> Service:
    """What visby is sent, of a definition as the coordinator keeps it."""
    kept = validation.normalise(msgspec.convert({**PLAIN, **changes}, Service), Rules((), PROVIDER))
    public, secrets = secret_parts.take_out(kept, SECRETS)
    keys = MemberKeys(b"secret of lubeck")
    made = topology.expand(public, secrets, keys=keys, operation="op", fingerprint="f1", own_endpoint="https://lubeck")
    return next(one.definition for one in made if one.member.cluster_id == "visby")


def shown_by_hansa(sent: Service, *, full: bool = True, **changes: Any) -> dict[str, Any]:
    """What another Hansa answers about it, asked by its owner or by somebody else."""
    wire = {**definitions.for_sending(sent), **changes}
    kept = validation.normalise(msgspec.convert(wire, Service), Rules(("debian",), THEIRS))
    own = {"owner": "alice", "namespace": "oscar-svc-alice", "labels": {"uid": "alice"}, "vo": "vo-there"}
    public, secrets = secret_parts.take_out(msgspec.structs.replace(kept, **own))
    record = Record(public, 3, "ready", False, (), 1.0, 1.0)
    answer: dict[str, Any] = msgspec.json.decode(
        msgspec.json.encode(wire_view.definition(record, full=full, secrets=secrets))
    )
    return answer


def changed(sent: Service, document: dict[str, Any]) -> list[str]:
    return likeness.differing(likeness.reckoned(sent), likeness.parts(document, sent))


@pytest.mark.parametrize("kind", RICH)
@pytest.mark.parametrize("full", [True, False])
def test_what_another_hansa_shows_is_what_we_reckon(kind: str, full: bool) -> None:
    sent = worker(**RICH[kind])
    assert changed(sent, shown_by_hansa(sent, full=full)) == []


@pytest.mark.parametrize(
    ("edit", "parts"),
    [
        ({"script": "echo other"}, ["script"]),
        ({"cpu": "1"}, ["cpu"]),
        ({"image": "debian:12"}, ["image"]),
        ({"environment": {"variables": {"A": "1", "B": "2"}, "secrets": {"WORD": ""}}}, ["environment"]),
        ({"environment": {"variables": {"A": "1"}}}, ["environment"]),
        ({"visibility": "public"}, ["visibility"]),
        ({"output": []}, ["output"]),
        ({"token": "cd" * 32}, ["token"]),
        ({"clusters": {"lubeck": {"endpoint": "https://elsewhere"}}}, ["clusters"]),
        ({"federation": {"group_id": "gray", "topology": "none"}}, ["federation"]),
        ({"script": "echo other", "memory": "1Gi"}, ["memory", "script"]),
    ],
)
def test_what_somebody_changed_is_named(edit: dict[str, Any], parts: list[str]) -> None:
    sent = worker()
    assert changed(sent, shown_by_hansa(sent, **edit)) == parts


def test_annotations_of_others_are_their_own_matter() -> None:
    sent = worker()
    marks = dict(sent.annotations)
    assert changed(sent, shown_by_hansa(sent, annotations={**marks, "cluster.example.org/node": "n1"})) == []
    assert changed(sent, shown_by_hansa(sent, annotations={**marks, "hansa/operation": "v9"})) == []
    for edit in ({"hansa/time-limit": "3"}, {"mine": "no"}):
        assert changed(sent, shown_by_hansa(sent, annotations={**marks, **edit})) == ["annotations"]


def test_amounts_are_compared_by_what_they_mean() -> None:
    sent = worker()
    shown = shown_by_hansa(sent)
    assert shown["cpu"] == "0.5"  # it was 500m
    assert changed(sent, {**shown, "cpu": "0.50", "memory": "131072Ki"}) == []
    assert changed(sent, {**shown, "cpu": "lots", "memory": None}) == ["cpu", "memory"]


def test_what_only_one_of_two_versions_knows_is_not_compared() -> None:
    then, now = likeness.reckoned(worker()), likeness.reckoned(worker(script="echo other"))
    assert likeness.differing({**then, "older": "a"}, {**now, "newer": "b"}) == ["script"]


_KEYS = st.sampled_from(["secrets", "members", "headers", "minio", "hansa/time-limit"]) | st.text(max_size=5)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)


_SENT = worker()


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from([*Service.__struct_fields__, "status"]), _JSON))
def test_any_answer_can_be_read(document: dict[str, Any]) -> None:
    """A peer may answer anything; the same answer is never a change."""
    found = likeness.parts(document, _SENT)
    assert likeness.differing(found, likeness.parts(document, _SENT)) == []
    assert set(found) <= set(Service.__struct_fields__)
