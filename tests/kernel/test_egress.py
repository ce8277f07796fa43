"""What may be called because a tenant named it: public addresses, and what the operator allowed."""

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.kernel import egress, ip_addresses
from hansa.kernel.egress import Rule, may_dial, may_name, target_of

NOTHING = Rule()

LOOPBACK = ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "0177.0.0.1", "127.0.0.1.", "::1", "[::1]", "0:0:0:0:0:0:0:1",
            "::ffff:127.0.0.1", "::ffff:7f00:1", "[::ffff:127.0.0.1]", "127.255.0.9"]  # fmt: skip
FORBIDDEN = [*LOOPBACK, "0.0.0.0", "0", "::", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1",
             "100.100.100.200", "169.254.169.254", "0xa9fea9fe", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "fc00::1",
             "192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", "224.0.0.1",
             "239.1.1.1", "240.0.0.1", "255.255.255.255", "168.63.129.16", "ff02::1", "fec0::1", "64:ff9b::7f00:1",
             "64:ff9b::808:808", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2002:a00:1::1", "2001:0:7f00:1::1", "::7f00:1",
             "::ffff:0:127.0.0.1", "2001:db8::1", "3fff::1", "100::1", "2001:20::1", "4000::1"]  # fmt: skip
PUBLIC = ["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8"]


@pytest.mark.parametrize("host", FORBIDDEN)
def test_special_addresses_are_refused_in_every_spelling(host: str) -> None:
    found = ip_addresses.literal(host)
    assert found is not None
    assert may_dial(found, 80, NOTHING)
    assert may_name(host, 80, NOTHING)


@pytest.mark.parametrize("host", PUBLIC)
def test_public_addresses_may_be_called_but_those_of_this_machine(host: str) -> None:
    assert may_dial(host, 443, NOTHING) == ""
    assert "this machine" in may_dial(host, 443, NOTHING, ours=True)


@given(st.ip_addresses(v=4))
def test_every_spelling_of_an_ipv4_address_means_that_address(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    first, rest = number >> 24, number & 0xFFFFFF
    octets = address.exploded.split(".")
    for spelling in (
        str(address),
        f"{address}.",
        str(number),
        hex(number),
        f"{first}.{rest}",
        ".".join(oct(int(octet)).replace("o", "") for octet in octets),
        ".".join(hex(int(octet)) for octet in octets),
        f"::ffff:{address}",
        f"[::ffff:{address}]",
    ):
        assert ip_addresses.literal(spelling) == address, spelling


@given(st.text("0123456789abcdefxX.", min_size=1, max_size=14))
def test_what_the_resolver_reads_as_an_address_is_an_address_to_us(text: str) -> None:
    """Otherwise a definition could name one that is only seen at the dial."""
    try:
        packed = socket.inet_aton(text)
    except OSError:
        return
    assert ip_addresses.literal(text) == ipaddress.IPv4Address(packed)


@given(st.ip_addresses())
def test_what_may_be_called_is_global_to_the_standard_library_too(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if not may_dial(address, 80, NOTHING):
        canonical = ip_addresses.canonical(address)
        assert canonical is not None
        assert canonical.is_global
        assert not canonical.is_multicast


@given(st.ip_addresses(v=4), st.sampled_from(["::ffff:0:{}", "64:ff9b::{}", "::{}"]))
def test_an_ipv4_address_inside_an_ipv6_one_is_never_called(inner: ipaddress.IPv4Address, form: str) -> None:
    assert may_dial(form.format(inner), 80, NOTHING)


@given(st.ip_addresses(network="10.0.0.0/8"), st.integers(1, 65535))
def test_an_allowed_network_opens_itself_and_nothing_of_this_machine(address: ipaddress.IPv4Address, port: int) -> None:
    rule = Rule.of(["10.0.0.0/8"])
    assert may_dial(address, port, rule) == ""
    assert may_dial(address, port, rule, ours=True)
    assert may_dial(f"::ffff:{address}", port, rule) == ""
    assert may_dial("192.168.0.1", port, rule)
    assert may_dial("127.0.0.1", port, rule)


def test_an_allowed_address_is_open_at_its_port_or_at_all() -> None:
    rule = Rule.of(["10.0.0.1:9000", "10.0.0.2", "[fd00::1]:9000", "fd00::2", "127.0.0.1:9001"])
    assert [may_dial(a, p, rule) == "" for a, p in [("10.0.0.1", 9000), ("10.0.0.2", 1), ("fd00::1", 9000), ("fd00::2", 7), ("127.0.0.1", 9001)]] == [True] * 5  # fmt: skip # noqa: E501
    assert all(may_dial(a, p, rule) for a, p in [("10.0.0.1", 9001), ("fd00::1", 1), ("127.0.0.1", 9000), ("::1", 9001)])  # fmt: skip # noqa: E501
    assert may_dial("10.0.0.2", 1, rule, ours=True) == "", "named for itself, it may be this machine"


def test_an_allowed_name_may_lead_anywhere_but_only_by_that_name_and_port() -> None:
    rule = Rule.of(["Minio.Internal:9000"])
    assert may_dial("127.0.0.1", 9000, rule, host="minio.internal.") == ""
    assert may_dial("127.0.0.1", 9001, rule, host="minio.internal")
    assert may_dial("127.0.0.1", 9000, rule, host="other.internal")
    assert may_dial("127.0.0.1", 9000, rule)
    assert may_dial("0.0.0.0", 9000, rule, host="minio.internal")


def test_nothing_opens_the_ports_this_machine_keeps_for_itself() -> None:
    rule = Rule.of(["127.0.0.0/8", "127.0.0.1", "inner.test:8888"], never=[8888]).with_pairs([("127.0.0.1", 8888)])
    assert may_dial("127.0.0.1", 8888, rule)
    assert may_dial("127.0.0.1", 8888, rule, host="inner.test")
    assert may_dial("1.1.1.1", 8888, rule, ours=True)
    assert may_dial("127.0.0.1", 8889, rule) == ""
    assert may_dial("1.1.1.1", 8888, rule) == "", "another machine's port of that number is not ours"


def test_behind_an_allowed_translator_the_inner_address_counts() -> None:
    rule = Rule.of(["64:ff9b::/96"])
    assert may_dial("64:ff9b::808:808", 80, rule) == ""
    assert may_dial("64:ff9b::7f00:1", 80, rule)
    assert may_dial("64:ff9b::a9fe:a9fe", 80, rule)


def test_what_the_code_itself_vouches_for_is_open_for_that_call() -> None:
    rule = NOTHING.with_pairs([("127.0.0.1", 9000), ("store.test", 9000)])
    assert may_dial("127.0.0.1", 9000, rule) == ""
    assert may_dial("127.0.0.1", 9001, rule)
    assert may_dial("10.0.0.1", 9000, rule, host="store.test") == ""


@pytest.mark.parametrize(
    "entry",
    ["", "10.0.0.1/8", "0.0.0.0/0", "::/0", "0.0.0.0", "224.0.0.0/8", "::ffff:10.0.0.0/104", "minio", "minio:",
     "a b:80", "minio:0", "minio:65536", "minio:٣", "http://minio:9000", "[::1", "[::1]x", "10.0.0.300", "*:80",
     "2002::/16", "10.0.0.1:99999", "1.2.3.4.5:80"],
)  # fmt: skip
def test_an_entry_that_means_nothing_or_too_much_is_refused_in_words(entry: str) -> None:
    with pytest.raises(ValueError, match=r"is|has"):
        Rule.of([entry])


@pytest.mark.parametrize(
    ("url", "leads"),
    [
        ("http://minio.example.org", ("http", "minio.example.org", 80)),
        ("https://minio.example.org:9000/", ("https", "minio.example.org", 9000)),
        ("https://[2606:4700::1111]:9000/a/b", ("https", "2606:4700::1111", 9000)),
        (" dav.example.org/remote.php ", ("https", "dav.example.org", 443)),
        ("HTTPS://Dav.example.org", ("https", "dav.example.org", 443)),
    ],
)
def test_a_plain_url_leads_somewhere(url: str, leads: tuple[str, str, int]) -> None:
    assert target_of(url, scheme="https") == leads


@pytest.mark.parametrize(
    "url",
    ["", "http://", "http:///x", "ftp://a.example", "file:///etc/passwd", "http://u@a.example", "http://u:p@a.example",
     "http://a.example?x=1", "a.example?x=1", "http://a.example#x", "http://a.example\\@b.example", "http://a.example:0",
     "http://a.example:", "http://a.example:99999", "http://a.example:x", "http://a b", "http://a.example\r\nx: y",
     "http://１２７.0.0.1", "http://127。0。0。1", "http://ⓛocalhost", "http://%31%32%37.0.0.1", "http://[::1%25lo]",
     "http://[::1", "http://1.2.3.4.5", "http://a..b", "http://.a", "gopher://a.example:1",
     "http://999.1.1.1", "//a.example", "http://-a.example", "http://08.1.1.1"],
)  # fmt: skip
def test_a_url_that_two_programs_could_read_differently_is_refused(url: str) -> None:
    with pytest.raises(egress.BadTarget) as caught:
        target_of(url, scheme="https")
    assert caught.value.hint


@given(st.text(max_size=60))
def test_a_text_is_a_target_or_is_refused_and_a_target_has_a_host_and_a_port(text: str) -> None:
    try:
        found = target_of(text, scheme="https")
    except egress.BadTarget:
        return
    assert found.host
    assert 0 < found.port < 65536


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "localhost.", "a.localhost"])
def test_the_names_of_this_machine_are_refused_by_name(host: str) -> None:
    assert may_name(host, 80, NOTHING)
    assert may_name(host, 80, Rule.of([f"{host}:80"])) == ""


def test_only_literal_addresses_are_the_same() -> None:
    assert egress.same_address("http://127.0.0.1:1", "https://127.0.0.1:2/x")
    assert egress.same_address("http://[::ffff:10.0.0.1]:1", "http://10.0.0.1")
    assert not egress.same_address("http://a.example:1", "http://a.example:2")
    assert not egress.same_address("http://10.0.0.1", "http://10.0.0.2")
    assert not egress.same_address("nonsense?", "nonsense?")
