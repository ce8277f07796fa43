"""What can be wrong with services and jobs."""

from hansa.kernel import errors

ASK_FOR_MORE = "lower its cpu or memory, or ask the cluster's admin for a larger quota"


class BadService(errors.Invalid):
    """The service specification is not valid."""

    code = "service.invalid"


class ServiceExists(errors.Conflict):
    """A service of this name exists in the cluster."""

    code = "service.exists"


class ServiceQuota(errors.Forbidden):
    """The user's quota of services is used up."""

    code = "service.quota"


class ServiceNotFound(errors.NotFound):
    """There is no such service, or the caller may not know of it."""

    code = "service.not-found"


class ServiceBusy(errors.Conflict):
    """The service was changed by somebody else at the same time."""

    code = "service.changed-meanwhile"


class NotExposed(errors.Invalid):
    """The service is not an exposed one."""

    code = "service.not-exposed"


class JobNotFound(errors.NotFound):
    """There is no such job, or its log is gone."""

    code = "job.not-found"


class ForeignInput(errors.Invalid):
    """The event names a store that is no input of its service."""

    code = "job.foreign-input"


class QueueFull(errors.Temporary):
    """Too many jobs wait already."""

    code = "job.queue-full"


class OwnerQueueFull(QueueFull):
    """One owner has too many open jobs, or too much input kept for them."""

    code = "job.owner-queue-full"


class NoRoom(errors.Temporary):
    """The cluster has no room for a job that another may run."""

    code = "job.no-room"


class BeyondQuota(errors.Invalid):
    """What should run needs more cpu or memory than all that runs for its owner may have."""

    code = "quota.beyond"


class RunFailed(errors.HansaError):
    """A synchronous run did not end well."""

    code, kind = "run.failed", errors.Kind.UNAVAILABLE


class NoWorker(errors.Temporary):
    """No worker became free for a synchronous run in time."""

    code = "run.no-worker"
