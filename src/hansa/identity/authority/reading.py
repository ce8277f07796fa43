"""What does a certificate say? Whose it is, its serial, its end, and by which short digest a root is known."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from hansa.identity.authority import names
from hansa.kernel import errors

_FINGERPRINT_DIGITS = 32  # 128 bits: finding another root with the same ones is out of reach
_SERIAL_DIGITS = 40


class NotACluster(errors.Forbidden):
    """The certificate does not name a cluster."""

    code = "identity.not-a-cluster"


@dataclass(frozen=True, slots=True)
class Presented:
    """Who showed a certificate. That it is genuine was seen to by TLS."""

    trust_domain: str
    cluster: str
    serial: str
    since: float
    until: float

    @property
    def life(self) -> int:
        """For which life of the cluster it was made."""
        return int(self.serial[8:16], 16)


def presented(der: bytes) -> Presented:
    """Raises `NotACluster`."""
    return _presented(_read(x509.load_der_x509_certificate, der))


def presented_in(chain: str) -> Presented:
    """The same for the first certificate of a chain in PEM."""
    return _presented(_read(x509.load_pem_x509_certificate, chain.encode()))


def fingerprint(certificate: str) -> str:
    """Of one certificate in PEM: the beginning of its SHA-256."""
    return _fingerprint(x509.load_pem_x509_certificate(certificate.encode()))


def fingerprints(bundle: str) -> dict[str, str]:
    """Of each certificate in a bundle of PEM, with that certificate. Raises `ValueError` if there is no certificate."""
    found = x509.load_pem_x509_certificates(bundle.encode())
    return {_fingerprint(one): one.public_bytes(Encoding.PEM).decode() for one in found}


def expires(certificate: str) -> float:
    """When the first certificate of a chain in PEM ends."""
    return x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc.timestamp()


def _fingerprint(certificate: x509.Certificate) -> str:
    return hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest()[:_FINGERPRINT_DIGITS]


def _read(load: Callable[[bytes], x509.Certificate], data: bytes) -> x509.Certificate:
    try:
        return load(data)
    except ValueError:
        raise NotACluster("the certificate cannot be read") from None


def _presented(certificate: x509.Certificate) -> Presented:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uris = found.get_values_for_type(x509.UniformResourceIdentifier)
    except (x509.ExtensionNotFound, ValueError, x509.DuplicateExtension):
        uris = []
    whose = names.read_cluster_uri(uris[0]) if len(uris) == 1 else None  # SPIFFE: one URI, or none counts
    if whose is None:
        raise NotACluster("the certificate does not name a cluster", hint="join with `hansa cluster join`")
    return Presented(
        *whose,
        f"{certificate.serial_number:0{_SERIAL_DIGITS}x}",
        certificate.not_valid_before_utc.timestamp(),
        certificate.not_valid_after_utc.timestamp(),
    )
