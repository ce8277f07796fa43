"""What is in a token to join? Its id, its secret, and by what the hub is recognised before anything is believed.

`hansa1.<id>.<secret>.<fingerprint of the root>.<trust domain, base64url>`: the hub makes it, a person carries it to a
manager, and the manager first of all compares the root that is shown to it with the fingerprint.
"""

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field

from hansa.federation.errors import BadToken

_FORM = re.compile(r"hansa1\.([0-9a-f]{16})\.([A-Za-z0-9_-]{43})\.([0-9a-f]{32})\.([A-Za-z0-9_-]{1,100})")
_TRUST_DOMAIN = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class JoinToken:
    id: str
    secret: str = field(repr=False)
    fingerprint: str
    trust_domain: str

    @classmethod
    def new(cls, *, fingerprint: str, trust_domain: str) -> "JoinToken":
        return cls(secrets.token_hex(8), secrets.token_urlsafe(_SECRET_BYTES), fingerprint, trust_domain)

    @classmethod
    def read(cls, text: str) -> "JoinToken":
        """Raises `BadToken`."""
        found = _FORM.fullmatch(text.strip())
        if found is not None:
            ident, secret, fingerprint, encoded = found.groups()
            trust_domain = _decoded(encoded)
            if _TRUST_DOMAIN.fullmatch(trust_domain):
                return cls(ident, secret, fingerprint, trust_domain)
        raise BadToken("this is not a token to join", hint="copy all of what `hansa cluster token create` printed")

    @property
    def text(self) -> str:
        encoded = base64.urlsafe_b64encode(self.trust_domain.encode()).rstrip(b"=").decode()
        return f"hansa1.{self.id}.{self.secret}.{self.fingerprint}.{encoded}"

    @property
    def digest(self) -> str:
        """What is remembered of the secret. It is as long as a key, so a plain digest cannot be guessed back."""
        return hashlib.sha256(self.secret.encode()).hexdigest()

    def is_the_one(self, digest: str) -> bool:
        return hmac.compare_digest(self.digest, digest)


def _decoded(text: str) -> str:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii")
    except ValueError:
        return ""
