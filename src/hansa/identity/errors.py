"""Why was somebody not let in? Each error names the issuer or audience concerned, never a token or password.

Most say that the credentials are not good enough (401 at OSCAR's doors, which answer 401 also to a user in
none of the wanted groups). Refusals after sign-in are `hansa.kernel.errors.Forbidden`.
"""

from hansa.kernel.errors import Conflict, HansaError, Invalid, Kind, Temporary, Unauthenticated


class CredentialsMissing(Unauthenticated):
    """The request carries no credentials."""

    code = "identity.credentials-missing"


class CredentialsMalformed(Unauthenticated):
    """The Authorization header cannot be read."""

    code = "identity.credentials-malformed"


class BadCredentials(Unauthenticated):
    """The user name or password is wrong."""

    code = "identity.bad-credentials"


class TooManyTries(Temporary):
    """Too many wrong passwords came from this address lately."""

    code, kind = "identity.too-many-tries", Kind.TOO_MANY


class TokenMalformed(Unauthenticated):
    """The bearer token is not a signed JWT of a kind we accept."""

    code = "identity.token-malformed"


class UnknownIssuer(Unauthenticated):
    """The token comes from an issuer this cluster does not trust."""

    code = "identity.unknown-issuer"


class BadSignature(Unauthenticated):
    """The token is not signed with a key its issuer publishes."""

    code = "identity.bad-signature"


class TokenExpired(Unauthenticated):
    """The token is no longer valid."""

    code = "identity.token-expired"


class TokenNotYetValid(Unauthenticated):
    """The token is not valid yet."""

    code = "identity.token-not-yet-valid"


class WrongAudience(Unauthenticated):
    """The token was made for somebody else."""

    code = "identity.wrong-audience"


class NotAnAccessToken(Unauthenticated):
    """The token tells its client who signed in, or serves another purpose; it does not open anything."""

    code = "identity.not-an-access-token"


class TokenRefused(Unauthenticated):
    """The issuer itself, or a rule on whom a token may name, refuses the token."""

    code = "identity.token-refused"


class NotInGroup(Unauthenticated):
    """The user is in none of the groups this cluster serves."""

    code = "identity.not-in-group"


class IssuerUnavailable(Temporary):
    """The issuer cannot be asked now, and what we know of it does not suffice."""

    code = "identity.issuer-unavailable"


class HomeContradicted(Invalid):
    """The settings contradict whose people have their plain subject as uid."""

    code = "identity.home-issuer"


class AnotherPerson(Conflict):
    """One uid, or one subject after an issuer moved, would be two people."""

    code = "identity.another-person"


class NoNamespaceLeft(Invalid):
    """No name is left for the user's namespace."""

    code = "identity.no-namespace-left"


class VaultLocked(HansaError):
    """A sealed secret or the vault's key cannot be used."""

    code, kind = "identity.vault-locked", Kind.INTERNAL
