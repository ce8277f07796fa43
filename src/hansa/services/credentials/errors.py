"""Why there is no fresh access token for a service. None of these ever repeats a token, a key or a password."""

from hansa.kernel import errors


class TokenSpent(errors.Conflict):
    """The service's refresh token has expired, was revoked or was used by somebody else."""

    code = "credentials.expired-or-revoked"


class IssuerUnreachable(errors.Temporary):
    """Whoever issues access tokens for the service does not answer."""

    code = "credentials.issuer-unreachable"


class Misconfigured(errors.Conflict):
    """The manager's settings do not let it use the service's refresh token."""

    code = "credentials.misconfigured"


class NoToken(errors.Conflict):
    """The service has no refresh token."""

    code = "credentials.none"


class NotCoordinator(errors.Conflict):
    """The service is a replica, and its coordinator keeps the token."""

    code = "credentials.not-coordinator"


class GroupKeyRefused(errors.Unauthenticated):
    """The group key is not that of such a federation."""

    code = "credentials.group-key-refused"
