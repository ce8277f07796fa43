"""Secrets leave a definition completely and come back only where they belong."""

import msgspec

from hansa.services import ClusterRef, Record, Service, secret_parts, wire_view
from hansa.services.service import Environment

SERVICE = Service(
    name="gray",
    image="debian",
    script="true",
    token="t" * 64,
    environment=Environment(variables={"A": "1"}, secrets={"PASSWORD": "s3cret", "refresh_token": "r3fresh"}),
    storage_providers={
        "minio": {"default": {"endpoint": "http://x", "access_key": "hidden", "secret_key": "hidden"}},
        "s3": {"mine": {"access_key": "AKIA", "secret_key": "k3y", "region": "eu"}},
    },
    clusters={"visby": ClusterRef(endpoint="https://v", auth_user="admin", auth_password="pa55")},
    owner="alice",
)
WORDS = ("s3cret", "r3fresh", "k3y", "AKIA", "pa55")


def test_nothing_secret_stays_in_the_definition() -> None:
    public, secrets = secret_parts.take_out(SERVICE)
    text = msgspec.json.encode(public).decode()
    assert not any(word in text for word in WORDS)
    assert set(secrets.values()) == set(WORDS)


def test_blanks_mean_as_it_was() -> None:
    public, secrets = secret_parts.take_out(SERVICE)
    _, again = secret_parts.take_out(public, secrets)
    assert again == secrets


def test_the_script_never_sees_the_refresh_token() -> None:
    _, secrets = secret_parts.take_out(SERVICE)
    assert secret_parts.for_script(secrets) == {"PASSWORD": "s3cret"}


def test_viewers_see_neither_token_nor_keys_and_owners_see_no_passwords() -> None:
    public, secrets = secret_parts.take_out(SERVICE)
    record = Record(public, 1, "ready", False, (), 0.0, 0.0)
    viewer = msgspec.json.encode(wire_view.definition(record, full=False, secrets={})).decode()
    owner = msgspec.json.encode(wire_view.definition(record, full=True, secrets=secrets)).decode()
    assert not any(word in viewer for word in (*WORDS, "t" * 64, "admin"))
    assert not any(word in owner for word in ("s3cret", "r3fresh", "pa55"))
    assert "k3y" in owner
    assert "t" * 64 in owner


def test_keys_stand_in_oscars_order() -> None:
    record = Record(SERVICE, 1, "ready", False, (), 0.0, 0.0)
    keys = list(wire_view.definition(record, full=True, secrets={}))
    assert keys[:4] == ["name", "cluster_id", "memory", "cpu"]
    assert keys.index("image") < keys.index("token") < keys.index("input") < keys.index("labels")
    assert "federation" not in keys
    assert "volume_status" in keys
