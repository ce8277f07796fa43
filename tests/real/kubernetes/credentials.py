"""Who is everybody in a cluster, and how do they prove it?

One authority signs the certificates of servers and of what calls them by certificate; everybody else has a random
token and a kubeconfig that carries it. Nobody is anonymous. All of it lies in a folder that only its owner enters and
is gone with the cluster.
"""

import base64
import datetime
import ipaddress
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SERVICE_ADDRESS = "10.96.0.1"  # where pods find the API, in every cluster

_LIFE = datetime.timedelta(days=2)
_EARLIER = datetime.timedelta(hours=1)  # a clock that is set right meanwhile must not make them invalid
# Who has a kubeconfig: the file's name, the account, its group.
_ACCOUNTS: Mapping[str, tuple[str, str]] = {
    "admin": ("admin", "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager", ""),
    "kube-scheduler": ("system:kube-scheduler", ""),
    "kube-proxy": ("system:kube-proxy", ""),
    "coredns": ("coredns", ""),
    "kubelet": ("system:node:{node}", "system:nodes"),
}


@dataclass(frozen=True, slots=True)
class Credentials:
    """Where they lie. `certificate("kubelet")` and `key("kubelet")` are a pair."""

    folder: Path

    @property
    def authority(self) -> Path:
        return self.certificate("authority")

    @property
    def tokens(self) -> Path:
        return self.folder / "tokens.csv"

    def certificate(self, name: str) -> Path:
        return self.folder / f"{name}.crt"

    def key(self, name: str) -> Path:
        return self.folder / f"{name}.key"

    def kubeconfig(self, name: str = "admin") -> Path:
        return self.folder / f"{name}.kubeconfig"


def issue(folder: Path, *, server: str, address: str, node: str) -> Credentials:
    """Everything a new cluster needs. `server` is the URL of its API, `address` where API and kubelet listen."""
    folder.mkdir(mode=0o700)
    made = Credentials(folder)
    signer = _Signer(made)
    names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost")
    signer.server("kube-apiserver", "kube-apiserver", names, (SERVICE_ADDRESS, address))
    signer.server("kubelet", f"system:node:{node}", (node,), (address,), group="system:nodes")
    signer.client("apiserver-to-kubelet", "kube-apiserver-kubelet-client", group="system:masters")
    signer.client("front-proxy", "front-proxy-client")
    _service_accounts(made)
    _accounts(made, server, node)
    return made


class _Signer:
    def __init__(self, where: Credentials) -> None:
        self._where = where
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject("hansa-test")
        itself = (
            self._blank(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_AUTHORITY_USAGE, critical=True)
        )
        self._write("authority", itself.sign(self._key, hashes.SHA256()), self._key)

    def server(self, file: str, name: str, names: Sequence[str], addresses: Sequence[str], *, group: str = "") -> None:
        own = [x509.IPAddress(ipaddress.ip_address(one)) for one in dict.fromkeys(("127.0.0.1", *addresses))]
        reached = x509.SubjectAlternativeName([*map(x509.DNSName, names), *own])
        self._sign(file, _subject(name, group), ExtendedKeyUsageOID.SERVER_AUTH, reached)

    def client(self, file: str, name: str, *, group: str = "") -> None:
        self._sign(file, _subject(name, group), ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _sign(
        self, file: str, subject: x509.Name, usage: x509.ObjectIdentifier, reached: x509.SubjectAlternativeName | None
    ) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        wanted = self._blank(subject, key.public_key()).add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if reached is not None:
            wanted = wanted.add_extension(reached, critical=False)
        self._write(file, wanted.sign(self._key, hashes.SHA256()), key)

    def _blank(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        ours = self._key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _EARLIER)
            .not_valid_after(now + _LIFE)
            # Python verifies strictly from 3.13 on, and then asks for both.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ours), critical=False)
        )

    def _write(self, file: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        _keep(self._where.certificate(file), certificate.public_bytes(serialization.Encoding.PEM))
        _keep(self._where.key(file), _pem(key))


_AUTHORITY_USAGE = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    crl_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


def _subject(name: str, group: str = "") -> x509.Name:
    """Kubernetes reads the account from the common name and its group from the organization."""
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _service_accounts(where: Credentials) -> None:
    """The pair that signs and verifies the tokens of service accounts."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    _keep(where.key("service-accounts"), _pem(key))
    _keep(where.certificate("service-accounts"), public)


def _accounts(where: Credentials, server: str, node: str) -> None:
    authority = base64.b64encode(where.authority.read_bytes()).decode()
    cluster = {"server": server, "certificate-authority-data": authority}
    rows = []
    for file, (pattern, group) in _ACCOUNTS.items():
        token, account = secrets.token_hex(16), pattern.format(node=node)
        rows.append(",".join([token, account, file, *([f'"{group}"'] if group else [])]) + "\n")
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": file, "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": file}}],
        }
        _keep(where.kubeconfig(file), json.dumps(config).encode())
    _keep(where.tokens, "".join(rows).encode())


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def _keep(path: Path, content: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
