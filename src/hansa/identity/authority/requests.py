"""What does a manager ask to be signed? Its key never leaves it; of the request only the public key counts.

A request says more than a key: a name, extensions, wishes. None of that is looked at, for who asks is known from the
token or from the certificate in use, and what it may be called is decided by the hub.
"""

import hashlib
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID

from hansa.kernel import errors

LONGEST = 16 * 1024
PublicKey = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey
_CURVES = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
_RSA_BITS = range(2048, 8193)  # larger ones would only cost every check of a signature


class BadRequest(errors.Invalid):
    """The certificate signing request cannot be accepted."""

    code = "identity.bad-signing-request"


@dataclass(frozen=True, slots=True)
class Requested:
    """A new key, and the request to sign it."""

    key: str = field(repr=False)  # PEM
    request: str  # PEM


def new_request(cluster: str) -> Requested:
    """A manager's new key. The name in the request is for people who look at it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, cluster)])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Requested(private.decode(), request.public_bytes(serialization.Encoding.PEM).decode())


def public_key(request: str) -> PublicKey:
    """The key that is to be signed, whose owner signed the request. Raises `BadRequest`."""
    if len(request) > LONGEST:
        raise BadRequest(f"the signing request is longer than {LONGEST} bytes", hint="ask with one key in PEM")
    try:
        read = x509.load_pem_x509_csr(request.encode())
        key, signed = read.public_key(), read.is_signature_valid
    except (ValueError, UnsupportedAlgorithm, InvalidSignature, TypeError):
        raise BadRequest("the signing request is not one in PEM that can be read", hint="make a PKCS #10 one") from None
    if not signed:
        raise BadRequest("the signing request is not signed with its own key", hint="sign it with the private key")
    return _strong(key)


def key_digest(key: PublicKey) -> str:
    """By which a key is known again, 64 hexadecimal digits."""
    spki = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(spki).hexdigest()


def _strong(key: object) -> PublicKey:
    hint = "use ECDSA on P-256, P-384 or P-521, Ed25519, or RSA of 2048 to 8192 bits"
    match key:
        case ed25519.Ed25519PublicKey():
            return key
        case ec.EllipticCurvePublicKey() if isinstance(key.curve, _CURVES):
            return key
        case ec.EllipticCurvePublicKey():
            raise BadRequest(f"the curve {key.curve.name} is not accepted", hint=hint)
        case rsa.RSAPublicKey() if key.key_size in _RSA_BITS and key.public_numbers().e >= 65537:
            return key
        case rsa.RSAPublicKey():
            raise BadRequest(f"an RSA key of {key.key_size} bits is not accepted", hint=hint)
    raise BadRequest("a key of this kind is not accepted", hint=hint)
