"""Which addresses a definition may name, by what is written alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.kernel.egress import Rule, target_of
from hansa.kernel.ip_addresses import literal
from hansa.services import BadService, places

LOOPBACK = ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "0177.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"]
INSIDE = ["169.254.169.254", "10.0.0.1", "192.168.0.1", "172.16.0.1", "100.64.0.1", "[fe80::1]", "[fd00:ec2::254]",
          "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::ffff:0:127.0.0.1]", "0.0.0.0", "224.0.0.1"]  # fmt: skip


def provided(kind: str, **settings: Any) -> dict[str, dict[str, dict[str, Any]]]:
    return {kind: {"mine": settings}}


@pytest.mark.parametrize("host", [*LOOPBACK, *INSIDE])
@pytest.mark.parametrize(
    ("kind", "key"),
    [("minio", "endpoint"), ("s3", "endpoint"), ("webdav", "hostname"), ("onedata", "oneprovider_host"),
     ("rucio", "host"), ("rucio", "auth_host"), ("rucio", "token_endpoint"), ("future", "base_url")],
)  # fmt: skip
def test_no_kind_of_store_leads_to_this_machine_or_its_network(kind: str, key: str, host: str) -> None:
    for url in (f"http://{host}:9000", f"https://{host}/x", host):
        with pytest.raises(BadService) as caught:
            places.check(provided(kind, **{key: url}), Rule())
        assert f"storage_providers.{kind}.mine.{key}" in caught.value.message
        assert "egress.allow" in caught.value.hint


@pytest.mark.parametrize(
    "url",
    ["https://dav.example.org/?x=1", "dav.example.org?x", "https://dav.example.org#x", "https://me:pw@dav.example.org",
     "me@dav.example.org", "ftp://dav.example.org", "file:///etc/passwd", "https://dav.example.org:0",
     "https://dav.example.org:99999", "https://dav example", "https://dav.example.org\n.evil", "\\\\dav.example.org"],
)  # fmt: skip
def test_an_address_carries_no_query_fragment_user_or_other_scheme(url: str) -> None:
    for kind, key in (("webdav", "hostname"), ("minio", "endpoint")):
        with pytest.raises(BadService) as caught:
            places.check(provided(kind, **{key: url}), Rule())
        assert "pw" not in caught.value.message


@pytest.mark.parametrize(
    "region",
    ["eu.evil.example/", "a.b", "x@evil.example", "eu west", "EU", "-eu", "e" * 64, "eu#", "eu?x", "é", "eu:1"],
)
def test_a_region_cannot_become_another_host(region: str) -> None:
    with pytest.raises(BadService, match="region"):
        places.check(provided("s3", region=region), Rule())


def test_who_knows_a_store_knows_no_other_server_at_its_address() -> None:
    known = [("127.0.0.1", 9000)]
    places.check(provided("minio", endpoint="http://127.0.0.1:9000"), Rule(), known)
    for kind, key, port in (("minio", "endpoint", 9001), ("webdav", "hostname", 9000), ("rucio", "host", 9000)):
        with pytest.raises(BadService):
            places.check(provided(kind, **{key: f"http://127.0.0.1:{port}"}), Rule(), known)


def test_there_are_not_thousands_of_them() -> None:
    many = {"webdav": {f"w{number}": {"hostname": "dav.example.org"} for number in range(257)}}
    with pytest.raises(BadService, match="256"):
        places.check(many, Rule())


def test_what_people_write_is_fine() -> None:
    places.check(provided("s3", region="eu-west-1", access_key="a", secret_key="b"), Rule())
    places.check(provided("s3", region="", endpoint=""), Rule())
    places.check(provided("minio", endpoint="https://minio.example.org:9000", region="RegionOne", verify=True), Rule())
    places.check(provided("webdav", hostname="cloud.example.org/remote.php/dav/files/me"), Rule())
    places.check(provided("webdav", hostname="https://cloud.example.org", login="me@example.org"), Rule())


def test_what_the_operator_allowed_may_be_named() -> None:
    rule = Rule.of(["10.0.0.0/8", "minio.localhost:9000"])
    places.check(provided("minio", endpoint="http://10.1.2.3:9000"), rule)
    places.check(provided("minio", endpoint="http://minio.localhost:9000"), rule)
    with pytest.raises(BadService):
        places.check(provided("minio", endpoint="http://minio.localhost:9001"), rule)


@given(
    st.sampled_from(["http://", "https://", "", "HTTP://", "http:/", "//"]),
    st.text("0123456789abcdefx.:[]@?#%/\\ -_lochst", max_size=30),
    st.sampled_from(["", ":80", ":9000", ":0", ":", ":99999", "/x", "?x", "#x"]),
)
def test_whatever_passes_has_a_host_that_is_a_name_or_a_public_address(scheme: str, host: str, rest: str) -> None:
    url = f"{scheme}{host}{rest}"
    try:
        places.check(provided("webdav", hostname=url), Rule())
    except BadService:
        return
    if url.strip():
        found = literal(target_of(url, scheme="https").host)
        assert found is None or found.is_global
