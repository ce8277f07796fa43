"""A service goes to Kubernetes and comes back as it was, and nothing secret is where a pod can reach it."""

import base64
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lightkube.resources.core_v1 import ConfigMap, Secret

from hansa.drivers.kubernetes import service_manifest
from hansa.drivers.kubernetes.service_manifest import DefinitionTooLarge, UnreadableService, Where
from hansa.services import ClusterRef, Federation, Member, Record, Service, StorageIO

WHERE = Where(cluster="lubeck", namespace="oscar-svc-alice-52", private="hansa")
SECRETS = {
    "environment.secrets.PASSWORD": "for-the-script",
    "environment.secrets.refresh_token": "r3fresh",
    "environment.secrets.hansa.group-key": "gr0up",
    "storage_providers.s3.mine.secret_key": "st0re",
    "clusters.visby.auth_password": "b4sic",
    "former operation": "x",
}
PRIVATE_WORDS = ("r3fresh", "gr0up", "st0re", "b4sic", "t0ken", "h3ader", "unkn0wn")


def record(**fields: Any) -> Record:
    service = Service(
        name="gray",
        image="debian",
        script="#!/bin/sh\necho ä\r\n",
        owner="alice@example.org",
        namespace=WHERE.namespace,
        token="t0ken",
        labels={"owner_name": "Alice Ä", "not a label!": "x", "hansa/cluster": "forged"},
        annotations={"a": "0x10", "b": "yes", "c": "2026-01-01"},
        storage_providers={"s3": {"mine": {"access_key": "", "secret_key": "", "odd": "unkn0wn", "region": "eu"}}},
        input=(StorageIO(storage_provider="minio.default", path="b/in"),),
        clusters={"visby": ClusterRef(endpoint="https://visby")},
        federation=Federation(
            members=(
                Member(type="endpoint", url="https://x", headers={"X-Key": "h3ader"}),
                Member(type="oscar", cluster_id="visby"),
            )
        ),
    )
    service = msgspec.structs.replace(service, **fields)
    return Record(service, 7, "ready", True, ("b", "c"), 1.25, 1_800_000_000.123456)


def test_what_was_kept_is_read() -> None:
    kept = service_manifest.render(record(), SECRETS, WHERE)
    assert service_manifest.read(kept.config_map, kept.private) == (record(), SECRETS)


def test_only_the_manager_says_whose_buckets_are_meant_and_members_where() -> None:
    owners, endpoints = {"b": "alice@example.org", "c": "bob@example.org"}, {"visby": "https://visby.example.org"}
    made = replace(record(), bucket_owners=owners, endpoints=endpoints)
    kept = service_manifest.render(made, {}, WHERE)
    assert service_manifest.read(kept.config_map, kept.private) == (made, {})
    assert not any(one in str(kept.config_map.to_dict()) for one in ("bob@example.org", "https://visby.example.org"))


def test_what_an_earlier_release_kept_is_still_as_it_should_be() -> None:
    kept = service_manifest.render(record(), {}, WHERE)
    assert "bucket_owners" not in base64.b64decode((kept.private.data or {})["service.json"]).decode()


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(script=texts, given=st.dictionaries(texts, texts, max_size=5), cpu=texts)
def test_every_text_is_read_as_it_was_written(script: str, given: dict[str, str], cpu: str) -> None:
    made = record(script=script, annotations=given, cpu=cpu)
    kept = service_manifest.render(made, {}, WHERE)
    assert service_manifest.read(kept.config_map, kept.private)[0] == made


def test_only_the_managers_namespace_holds_what_is_secret() -> None:
    kept = service_manifest.render(record(), SECRETS, WHERE)
    secret = kept.secret
    assert secret is not None
    assert secret.metadata is not None
    assert (secret.metadata.name, secret.metadata.namespace) == ("gray", WHERE.namespace)
    assert secret.data == {"PASSWORD": base64.b64encode(b"for-the-script").decode()}
    shown = str(kept.config_map.to_dict())
    assert not [word for word in (*PRIVATE_WORDS, "for-the-script") if word in shown]
    assert kept.private.metadata is not None
    assert kept.private.metadata.namespace == "hansa"


def test_a_service_without_secrets_has_none_in_the_users_namespace() -> None:
    kept = service_manifest.render(record(), {"environment.secrets.refresh_token": "r3fresh"}, WHERE)
    assert kept.secret is None


def test_it_is_found_as_in_oscar_and_by_labels_that_no_user_chooses() -> None:
    meta = service_manifest.render(record(), SECRETS, WHERE).config_map.metadata
    assert meta is not None
    assert meta.name == "gray"
    marks = meta.labels or {}
    assert marks["oscar_service"] == "gray"
    assert marks["hansa/cluster"] == "lubeck"
    assert marks["owner_name"] == "Alice"
    assert "not a label!" not in marks


def test_too_much_for_one_object_is_refused() -> None:
    with pytest.raises(DefinitionTooLarge, match="at most 1048576"):
        service_manifest.render(record(script="x" * 2**20), SECRETS, WHERE)
    with pytest.raises(DefinitionTooLarge):
        service_manifest.render(record(), {"environment.secrets.A": "x" * 2**20}, WHERE)


def config_map(text: str, **meta: Any) -> ConfigMap:
    made = ConfigMap.from_dict(
        {"metadata": {"name": "gray", "namespace": "ns", **meta}, "data": {"function_config.yaml": text}}
    )
    assert isinstance(made, ConfigMap)
    return made


def test_one_that_oscar_made_is_read() -> None:
    theirs = config_map("name: gray\nimage: debian\ntoken: abc\nscript: ''\nfederation: null\ninput: null\nnew: 1\n")
    assert theirs.metadata is not None
    assert theirs.data is not None
    theirs.data["script.sh"] = "true"
    theirs.metadata.creationTimestamp = datetime(2026, 1, 1, tzinfo=UTC)
    found, secrets = service_manifest.read(theirs, None)
    assert (found.service.token, found.service.script, found.phase, secrets) == ("abc", "true", "ready", {})
    assert found.created == found.updated == theirs.metadata.creationTimestamp.timestamp()


@pytest.mark.parametrize("text", ["", "[", "- 1", "name: other", "name: gray\ninput: 5", "a: &a [*a]"])
def test_one_that_holds_no_service_is_refused(text: str) -> None:
    with pytest.raises(UnreadableService, match="ConfigMap gray in namespace ns"):
        service_manifest.read(config_map(text), None)


@pytest.mark.parametrize("note", ["hansa/version", "hansa/created", "hansa/made-buckets", "hansa/phase"])
def test_a_state_that_means_nothing_is_refused(note: str) -> None:
    with pytest.raises(UnreadableService):
        service_manifest.read(config_map("name: gray", annotations={note: "{"}), None)


def test_nobody_gives_a_service_to_somebody_else() -> None:
    mine = service_manifest.render(record(owner="mallory"), {}, WHERE)
    known = service_manifest.render(record(owner="alice"), SECRETS, WHERE)
    with pytest.raises(UnreadableService, match="mallory"):
        service_manifest.read(mine.config_map, known.private)


def test_what_was_changed_is_named() -> None:
    wanted = service_manifest.render(record(), SECRETS, WHERE).config_map
    found = service_manifest.render(record(), SECRETS, WHERE).config_map
    assert found.metadata is not None
    assert found.data is not None
    assert service_manifest.unlike(None, wanted) == "the ConfigMap gray is gone"
    found.data["theirs"] = "x"
    assert service_manifest.unlike(found, wanted) == ""
    found.data["script.sh"] = "false"
    assert service_manifest.unlike(found, wanted) == "script.sh of the ConfigMap gray was changed"
    found.data["script.sh"] = record().service.script
    assert found.metadata.labels is not None
    del found.metadata.labels["oscar_service"]
    assert service_manifest.unlike(found, wanted) == "the label oscar_service of the ConfigMap gray was removed"


def test_ours_is_known_without_its_labels() -> None:
    private: Secret = service_manifest.render(record(), SECRETS, WHERE).private
    assert private.metadata is not None
    private.metadata.labels = {}
    assert service_manifest.is_ours(private, "lubeck")
    assert not service_manifest.is_ours(private, "visby")
    assert not service_manifest.is_ours(config_map("name: gray"), "lubeck")
    name = str(private.metadata.name)
    assert service_manifest.service_of(name, private=True) == "gray"
