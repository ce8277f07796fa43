"""What is a root of trust, and how does one follow another? `federation/rotation.py` decides when.

A root that follows is also signed by the one before it (cross-signed). Whoever shows a certificate of the new root
sends that link along, so it is accepted by those who know the old root alone: a member that was away, a hub process
that has not read the news yet. The change from one root to the next is therefore never a moment.
"""

import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

EARLIER = 86_400.0  # members' clocks may be behind; a root and a hub's certificate are no secret that this could hurt
_ID_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Root:
    """One root. `links` are certificates of its key that former roots signed, newest first."""

    id: str
    certificate: str  # PEM
    key: str = field(repr=False)  # PEM
    links: str = ""  # PEM


def root_id(serial: str) -> str:
    """Which root signed the certificate of this serial: each begins with the id of its root."""
    return serial[:_ID_DIGITS]


def new_root(trust_domain: str, *, now: float, seconds: float) -> Root:
    key = ec.generate_private_key(ec.SECP256R1())
    # The first digit keeps serials positive and all of one length.
    ident = secrets.choice("1234567") + secrets.token_hex(_ID_DIGITS)[: _ID_DIGITS - 1]
    name = _name(trust_domain, ident)
    certificate = _ca(key.public_key(), name, name, key, now=now - EARLIER, until=now + seconds)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Root(ident, pem(certificate), private.decode())


def cross_sign(new: Root, old: Root) -> Root:
    """`new`, vouched for by `old` and by those that vouch for `old`, each until it expires itself."""
    ours, theirs = x509.load_pem_x509_certificate(new.certificate.encode()), _certificate(old)
    public = ours.public_key()
    assert isinstance(public, ec.EllipticCurvePublicKey)
    link = _ca(
        public,
        ours.subject,
        theirs.subject,
        _key(old),
        now=max(ours.not_valid_before_utc, theirs.not_valid_before_utc).timestamp(),
        until=min(ours.not_valid_after_utc, theirs.not_valid_after_utc).timestamp(),
    )
    return Root(new.id, new.certificate, new.key, pem(link) + old.links)


@lru_cache(maxsize=8)  # reading a key costs as much as signing with it
def signer(root: Root) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    return _certificate(root), _key(root)


def moment(at: float) -> datetime:
    return datetime.fromtimestamp(int(at), UTC)


def pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _certificate(root: Root) -> x509.Certificate:
    return x509.load_pem_x509_certificate(root.certificate.encode())


def _key(root: Root) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(root.key.encode(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def _name(trust_domain: str, ident: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, trust_domain),
            x509.NameAttribute(NameOID.COMMON_NAME, f"root {ident}"),
        ]
    )


def _ca(
    public: ec.EllipticCurvePublicKey,
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    *,
    now: float,
    until: float,
) -> x509.Certificate:
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment(now))
        .not_valid_after(moment(until))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
