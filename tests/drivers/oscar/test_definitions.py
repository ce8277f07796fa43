"""Is a service written as OSCAR's Go manager reads it?"""

import json

import msgspec
import pytest

from hansa.drivers.oscar import definitions
from hansa.services import ClusterRef, Federation, Member, Service, StorageIO
from hansa.services.service import Environment, Expose, VolumeRequest

WORKER = Service(
    name="gray-b",
    cluster_id="visby",
    cpu="500m",
    image="debian",
    script="cat",
    token="ab" * 32,
    federation=Federation(
        group_id="gray-a",
        topology="mesh",
        delegation="random",
        members=(Member(type="oscar", cluster_id="lubeck", service_name="gray-a"),),
    ),
    input=(StorageIO(storage_provider="minio.default", path="in"),),
    output=(StorageIO(storage_provider="minio.default", path="out", suffix=("png",)),),
    environment=Environment(variables={"A": "1"}, secrets={"refresh_token": "the-refresh-token"}),
    annotations={"oscar.grycap/federation-worker": "true"},
    clusters={"lubeck": ClusterRef(endpoint="https://lubeck.example.org", ssl_verify=True)},
    storage_providers={"minio": {"default": {"endpoint": "https://s3.example.org", "secret_key": "the-secret-key"}}},
)


@pytest.mark.parametrize(
    ("given", "plain"),
    [("500m", "0.5"), ("0.2", "0.2"), ("1", "1"), ("2000m", "2"), ("1e1", "10"), ("1.50", "1.5"), ("100", "100"),
     (".25", "0.25"), ("1u", "0.000001"), ("0", "0"), ("0m", "0"), ("1k", "1000"), ("lots", "lots")],
)  # fmt: skip
def test_cpu_is_a_plain_decimal(given: str, plain: str) -> None:
    assert definitions.plain_cpu(given) == plain


def test_everything_is_sent_in_the_keys_of_the_wire() -> None:
    sent = definitions.for_sending(WORKER)
    assert sent["cpu"] == "0.5"
    assert sent["token"] == "ab" * 32
    assert sent["environment"]["secrets"] == {"refresh_token": "the-refresh-token"}
    assert sent["federation"] == {
        "group_id": "gray-a",
        "topology": "mesh",
        "delegation": "random",
        "members": [
            {"type": "oscar", "cluster_id": "lubeck", "service_name": "gray-a", "url": "", "ssl_verify": False,
             "priority": 0, "headers": None}
        ],
    }  # fmt: skip
    assert sent["input"] == [{"storage_provider": "minio.default", "path": "in"}]
    assert sent["output"] == [{"storage_provider": "minio.default", "path": "out", "suffix": ["png"]}]
    assert sent["clusters"]["lubeck"]["auth_password"] == ""
    assert list(sent)[:4] == ["name", "cluster_id", "memory", "cpu"]


def test_empty_parts_are_left_out() -> None:
    sent = definitions.for_sending(Service(name="a", expose=Expose(api_port=(80,)), volume=VolumeRequest(size="1Gi")))
    for key in ("federation", "script", "image_pull_secrets", "storage_providers", "clusters", "namespace"):
        assert key not in sent
    assert sent["volume"] == {"size": "1Gi", "mount_path": ""}
    assert sent["expose"]["api_port"] == [80]
    assert "nodePort" not in sent["expose"]
    assert sent["labels"] == {}
    assert "volume" not in definitions.for_sending(Service(name="a"))


def test_it_means_the_same_when_read_again() -> None:
    again = msgspec.json.decode(json.dumps(definitions.for_sending(WORKER)), type=Service)
    assert again == msgspec.structs.replace(WORKER, cpu="0.5")


def test_what_only_answers_have_is_not_put_back() -> None:
    read = {"name": "a", "labels": {}, "deployment": {"state": "ready"}, "volume_status": {"enabled": False}}
    assert definitions.for_putting_back(read) == {"name": "a", "labels": {}}


def test_blanks_do_not_wipe_the_secrets_an_oscar_keeps() -> None:
    read = {"name": "a", "environment": {"variables": {"A": ""}, "secrets": {"kept": "", "new": "x"}}}
    sent = definitions.without_blank_secrets(read)
    assert sent["environment"] == {"variables": {"A": ""}, "secrets": {"new": "x"}}
    assert read["environment"]["secrets"] == {"kept": "", "new": "x"}  # type: ignore[index]
    for odd in ({}, {"environment": None}, {"environment": {"secrets": None}}):
        assert definitions.without_blank_secrets(dict(odd)) == odd


def test_secrets_are_known_in_both_forms() -> None:
    wanted = {"ab" * 32, "the-refresh-token", "the-secret-key"}
    assert wanted <= set(definitions.secrets_of(WORKER))
    assert wanted <= set(definitions.secrets_in(definitions.for_sending(WORKER)))
