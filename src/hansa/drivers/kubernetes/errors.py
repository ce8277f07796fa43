"""What can go wrong between us and a Kubernetes cluster, in our words."""

from hansa.kernel import errors


class ApiUnreachable(errors.Temporary):
    """The API server of the Kubernetes cluster does not answer, or not in time."""

    code = "kubernetes.unreachable"


class ApiRefused(errors.HansaError):
    """The API server does not let us do this: rights are missing, a quota is used up, or an object is not valid."""

    code, kind = "kubernetes.refused", errors.Kind.BAD_GATEWAY
