"""How do we check tokens of OpenID Connect issuers: Keycloak, EGI Check-in, any with discovery and JWKS?

`OidcVerifier` fulfils the port `hansa.identity.TokenVerifier`. `keys` keeps each issuer's signing keys,
`tokens` checks one token against them, `userinfo` asks for what the token does not say, `cache` remembers the
outcome, `policy` holds the numbers. `OidcExchange` turns refresh tokens into access tokens.
"""

from hansa.drivers.oidc.exchange import OidcExchange
from hansa.drivers.oidc.policy import Policy
from hansa.drivers.oidc.verifier import OidcVerifier

__all__ = ["OidcExchange", "OidcVerifier", "Policy"]
