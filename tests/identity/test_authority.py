"""Roots, what they sign, and what is read from it: names come from the hub, never from the request."""

from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.x509 import verification
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from hansa.identity import authority

NOW = 1_800_000_000.0
DAY = 86_400.0
SHA256 = hashes.SHA256()
CLUSTER = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True)


def root(**given: Any) -> authority.Root:
    return authority.new_root("hansa", **{"now": NOW, "seconds": 365 * DAY, **given})


def request_for(key: Any, *, name: str = "x", alternative: str = "", algorithm: Any = SHA256) -> str:
    builder = x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    )
    if alternative:
        wish = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(alternative)])
        builder = builder.add_extension(wish, critical=True)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return builder.sign(key, algorithm).public_bytes(serialization.Encoding.PEM).decode()


def signed(of: authority.Root, request: str, cluster: str = "lubeck", **given: Any) -> authority.Issued:
    arguments: dict[str, Any] = {"now": NOW, "seconds": DAY, "trust_domain": "hansa", "life": 7, **given}
    return authority.sign_cluster(of, authority.public_key(request), cluster=cluster, **arguments)


def first(chain: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(chain.encode())


@given(cluster=CLUSTER)
@settings(max_examples=25, deadline=None)
def test_a_certificate_says_who_it_is_for(cluster: str) -> None:
    issued = signed(ROOT, authority.new_request(cluster).request, cluster)
    told = authority.presented_in(issued.chain)
    assert (told.trust_domain, told.cluster, told.serial) == ("hansa", cluster, issued.serial)
    assert (told.since, told.until) == (NOW - 300, NOW + DAY) == (NOW - 300, issued.until)
    assert authority.root_id(issued.serial) == ROOT.id
    assert len(issued.serial) == 40
    assert told.life == 7


def test_of_a_request_only_the_key_counts() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    asked = request_for(key, name="visby", alternative="spiffe://hansa/cluster/visby")
    certificate = first(signed(ROOT, asked).chain)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == ["spiffe://hansa/cluster/lubeck"]
    assert "visby" not in certificate.subject.rfc4514_string()
    assert certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False
    purposes = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(purposes) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert certificate.public_key() == key.public_key()


@pytest.mark.parametrize(
    "key",
    [
        ec.generate_private_key(ec.SECP384R1()),
        ed25519.Ed25519PrivateKey.generate(),
        rsa.generate_private_key(65537, 2048),
    ],
    ids=["p384", "ed25519", "rsa2048"],
)
def test_other_strong_keys_do_as_well(key: Any) -> None:
    algorithm = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    issued = signed(ROOT, request_for(key, algorithm=algorithm))
    assert first(issued.chain).public_key() == key.public_key()


@pytest.mark.parametrize(
    ("key", "why"),
    [
        (rsa.generate_private_key(65537, 1024), "1024 bits"),
        (rsa.generate_private_key(3, 2048), "2048 bits"),
        (ec.generate_private_key(ec.SECP192R1()), "secp192r1"),
        (ec.generate_private_key(ec.SECP256K1()), "secp256k1"),
        (dsa.generate_private_key(2048), "kind"),
    ],
    ids=["rsa1024", "exponent", "p192", "k256", "dsa"],
)
def test_weak_keys_are_refused(key: Any, why: str) -> None:
    with pytest.raises(authority.BadRequest, match=why):
        authority.public_key(request_for(key))


def test_a_request_for_a_key_somebody_else_has_is_refused() -> None:
    der = x509.load_pem_x509_csr(request_for(ec.generate_private_key(ec.SECP256R1())).encode())
    data = bytearray(der.public_bytes(serialization.Encoding.DER))
    data[-1] ^= 1
    forged = x509.load_der_x509_csr(bytes(data)).public_bytes(serialization.Encoding.PEM).decode()
    with pytest.raises(authority.BadRequest, match="own key"):
        authority.public_key(forged)


@given(text=st.text(max_size=300))
@settings(max_examples=60, deadline=None)
def test_nonsense_is_refused_in_words(text: str) -> None:
    for asked in (text, f"-----BEGIN CERTIFICATE REQUEST-----\n{text}\n-----END CERTIFICATE REQUEST-----\n"):
        with pytest.raises(authority.BadRequest):
            authority.public_key(asked)


def test_a_long_request_is_not_even_read() -> None:
    with pytest.raises(authority.BadRequest, match="longer"):
        authority.public_key("x" * 20_000)


def test_nothing_outlives_its_root() -> None:
    short = root(seconds=DAY)
    assert signed(short, authority.new_request("x").request, seconds=90 * DAY).until == NOW + DAY
    hub, _ = authority.sign_hub(short, trust_domain="hansa", now=NOW, seconds=90 * DAY)
    assert authority.expires(hub.chain) == NOW + DAY


def test_the_hubs_certificate() -> None:
    issued, key = authority.sign_hub(ROOT, trust_domain="hansa", now=NOW, seconds=DAY)
    certificate = first(issued.chain)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["hub.hansa"]
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == ["spiffe://hansa/hub"]
    assert list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [
        ExtendedKeyUsageOID.SERVER_AUTH
    ]
    private = serialization.load_pem_private_key(key.encode(), None)
    assert certificate.public_key() == private.public_key()
    with pytest.raises(authority.NotACluster):
        authority.presented_in(issued.chain)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_former_roots_vouch_for_later_ones(depth: int) -> None:
    """By a library of its own, and strictly: the hub's certificate is good for who knows any of the roots."""
    roots = [root()]
    for _ in range(depth):
        roots.append(authority.cross_sign(root(), roots[-1]))
    issued, _ = authority.sign_hub(roots[-1], trust_domain="hansa", now=NOW, seconds=DAY)
    leaf, *links = x509.load_pem_x509_certificates(issued.chain.encode())
    assert len(links) == depth
    for known in roots:
        store = verification.Store([first(known.certificate)])
        checking = verification.PolicyBuilder().store(store).time(moment(NOW))
        checking.build_server_verifier(x509.DNSName("hub.hansa")).verify(leaf, links)
    stranger = verification.PolicyBuilder().store(verification.Store([first(root().certificate)]))
    with pytest.raises(verification.VerificationError):
        stranger.time(moment(NOW)).build_server_verifier(x509.DNSName("hub.hansa")).verify(leaf, links)


def test_fingerprints_of_a_bundle() -> None:
    one, other = root(), root()
    found = authority.fingerprints(one.certificate + other.certificate)
    assert found == {authority.fingerprint(one.certificate): one.certificate,
                     authority.fingerprint(other.certificate): other.certificate}  # fmt: skip
    with pytest.raises(ValueError):
        authority.fingerprints("no certificate")


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["spiffe://hansa/hub"],
        ["spiffe://hansa/cluster/"],
        ["spiffe://hansa/cluster/a/b"],
        ["spiffe://hansa/cluster/Visby"],
        ["https://hansa/cluster/visby"],
        ["spiffe://hansa/cluster/lubeck", "spiffe://hansa/cluster/visby"],
    ],
)
def test_what_names_no_cluster(names: list[str]) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "lubeck")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(5)
        .not_valid_before(moment(NOW))
        .not_valid_after(moment(NOW + DAY))
    )
    if names:
        uris = [x509.UniformResourceIdentifier(one) for one in names]
        builder = builder.add_extension(x509.SubjectAlternativeName(uris), critical=False)
    der = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
    with pytest.raises(authority.NotACluster):
        authority.presented(der)


def test_what_is_no_certificate() -> None:
    with pytest.raises(authority.NotACluster):
        authority.presented(b"no")


def test_keys_do_not_show() -> None:
    asked = authority.new_request("lubeck")
    assert "PRIVATE" not in repr(asked) + repr(ROOT)


def moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


ROOT = root()
