"""What does a root sign? Certificates of clusters (as clients) and of the hub (as a server), nothing else."""

import secrets
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hansa.identity.authority import names
from hansa.identity.authority.requests import PublicKey
from hansa.identity.authority.roots import EARLIER, Root, moment, pem, signer

CLOCKS_DIFFER = 300.0  # seconds
_RANDOM_BYTES = 12
_LIVES = 2**32


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate with the links to former roots, PEM; its serial as 40 hexadecimal digits; when it ends."""

    chain: str
    serial: str
    until: float


def sign_cluster(
    root: Root, key: PublicKey, *, trust_domain: str, cluster: str, life: int, now: float, seconds: float
) -> Issued:
    """A member's certificate. It ends with its root at the latest. `life` counts how often there was a cluster of this
    id, and stands in the serial: a certificate tells for which of them it was made."""
    uri = names.cluster_uri(trust_domain, cluster)
    return _issue(
        root,
        key,
        common_name=cluster,
        trust_domain=trust_domain,
        alternatives=[x509.UniformResourceIdentifier(uri)],
        purpose=ExtendedKeyUsageOID.CLIENT_AUTH,
        life=life,
        since=now - CLOCKS_DIFFER,
        until=now + seconds,
    )


def sign_hub(root: Root, *, trust_domain: str, now: float, seconds: float) -> tuple[Issued, str]:
    """A hub process's certificate with a new key (PEM), which lives in the memory of that process only."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = names.hub_name(trust_domain)
    issued = _issue(
        root,
        key.public_key(),
        common_name=name,
        trust_domain=trust_domain,
        alternatives=[x509.DNSName(name), x509.UniformResourceIdentifier(names.hub_uri(trust_domain))],
        purpose=ExtendedKeyUsageOID.SERVER_AUTH,
        life=0,
        since=now - EARLIER,
        until=now + seconds,
    )
    return issued, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _issue(
    root: Root,
    key: PublicKey,
    *,
    common_name: str,
    trust_domain: str,
    alternatives: list[x509.GeneralName],
    purpose: x509.ObjectIdentifier,
    life: int,
    since: float,
    until: float,
) -> Issued:
    above, signing_key = signer(root)
    since = max(since, above.not_valid_before_utc.timestamp())
    until = min(until, above.not_valid_after_utc.timestamp())
    serial = f"{root.id}{life % _LIVES:08x}{secrets.token_hex(_RANDOM_BYTES)}"
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, trust_domain),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64]),
        ]
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(above.subject)
        .public_key(key)
        .serial_number(int(serial, 16))
        .not_valid_before(moment(since))
        .not_valid_after(moment(until))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()),
            critical=False,
        )
        .sign(signing_key, hashes.SHA256())
    )
    return Issued(pem(certificate) + root.links, serial, float(int(until)))
