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


class NoSuchDocument(errors.NotFound):
    """There is no such document, or not in this version."""

    code = "federation.no-such-document"


class BadDocument(errors.Invalid):
    """A configuration document, or how it should spread, is not valid."""

    code = "federation.bad-document"


class BadPolicy(errors.Invalid):
    """A policy's rules are not valid."""

    code = "federation.bad-policy"


class WrongVersion(errors.Conflict):
    """It was decided on another version than the newest."""

    code = "federation.wrong-version"


class NotInThisState(errors.Conflict):
    """The rollout's state does not allow this."""

    code = "federation.wrong-rollout-state"


class SecondPolicy(errors.Conflict):
    """There can be one policy of this kind only."""

    code = "federation.second-policy"


class NoSuchToken(errors.NotFound):
    """There is no token to join of this id."""

    code = "federation.no-such-token"


class ClusterExists(errors.Conflict):
    """A cluster of this id is a member already."""

    code = "federation.cluster-exists"


class NotAdmitted(errors.Forbidden):
    """The federation's admission policy does not let this cluster in."""

    code = "federation.not-admitted"


class BadFacts(errors.Invalid):
    """What a cluster says of itself cannot be registered."""

    code = "federation.bad-facts"


class BadAddress(errors.Invalid):
    """Other clusters must not be sent to this address."""

    code = "federation.bad-address"


class AddressTaken(errors.Conflict):
    """Another cluster has this address."""

    code = "federation.address-taken"


class NotAskedFor(errors.Conflict):
    """The cluster does not ask for this address, or not any more."""

    code = "federation.not-asked-for"


class CertificateExpired(errors.Forbidden):
    """The time of a cluster's certificate is over."""

    code = "federation.certificate-expired"


class CertificateRefused(errors.Forbidden):
    """The hub does not accept the certificate its member shows."""

    code = "federation.certificate-refused"


class TooManyCertificates(errors.Conflict):
    """So many certificates of one cluster are in use that it gets no further one."""

    code = "federation.too-many-certificates"


class GoodbyeInDoubt(errors.Conflict):
    """Somebody says goodbye for a cluster, and it is not certain that it is the cluster itself."""

    code = "federation.goodbye-in-doubt"


class RotationUnderWay(errors.Conflict):
    """A new root is being introduced already."""

    code = "federation.rotation-under-way"


class NoSuchRoot(errors.NotFound):
    """There is no root of trust of this id."""

    code = "federation.no-such-root"


class NoAuthority(errors.Temporary):
    """The hub has no root of trust to sign with yet."""

    code = "federation.no-authority"


class TooManyViews(errors.Temporary):
    """One person has too many live views open."""

    code, kind = "federation.too-many-views", errors.Kind.TOO_MANY


class HubUnreachable(errors.Temporary):
    """The hub does not answer its member."""

    code = "federation.hub-unreachable"


class HubRefused(errors.HansaError):
    """The hub said no to its member; `problem` is the code of its own error."""

    code, kind = "federation.hub-refused", errors.Kind.BAD_GATEWAY


class WrongHub(errors.HansaError):
    """Whoever answers at the hub's address cannot prove to be that hub."""

    code, kind = "federation.wrong-hub", errors.Kind.BAD_GATEWAY
