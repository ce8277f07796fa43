"""What can be wrong with services and jobs."""

from hansa.kernel import errors


class BadService(errors.Invalid):
    """The service specification is not valid."""

    code = "service.invalid"


class ServiceExists(errors.Conflict):
    """A service of this name exists in the cluster."""

    code = "service.exists"


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


class QueueFull(errors.Temporary):
    """Too many jobs wait already."""

    code = "job.queue-full"


class NoRoom(errors.Temporary):
    """The cluster has no room for a job that another may run."""

    code = "job.no-room"


class RunFailed(errors.HansaError):
    """A synchronous run did not end well."""

    code, kind = "run.failed", errors.Kind.UNAVAILABLE


class NoWorker(errors.Temporary):
    """No worker became free for a synchronous run in time."""

    code = "run.no-worker"
