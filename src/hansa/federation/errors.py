"""What the hub refuses, and what to do then."""

from hansa.kernel import errors


class NoSuchCluster(errors.NotFound):
    """There is no cluster of this id in the federation."""

    code = "federation.no-such-cluster"


class ChangedMeanwhile(errors.Conflict):
    """Somebody else changed it at the same time."""

    code = "federation.changed-meanwhile"


class LeaseLost(errors.Temporary):
    """Another hub process does this work now."""

    code = "federation.lease-lost"


class BadToken(errors.Unauthenticated):
    """The token to join is unknown, used up, expired, or for another cluster."""

    code = "federation.bad-token"


class NotAMember(errors.Forbidden):
    """The certificate belongs to no member (any more)."""

    code = "federation.not-a-member"


class WasRemoved(errors.Forbidden):
    """The cluster was removed from the federation while it was away."""

    code = "federation.removed"


class WrongState(errors.Conflict):
    """The cluster's state does not allow this."""

    code = "federation.wrong-state"


class BadSelector(errors.Invalid):
    """A selector cannot be read."""

    code = "federation.bad-selector"
