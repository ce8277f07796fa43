"""How many files and connections may this process have open, and is that enough? A hub has two for each cluster."""

import resource

_OWN = 256  # besides its members': people, the database, logs
_FOR_EACH = 2  # one for heartbeats, one for the watch
_PLENTY = 2**20  # there are programs that go through all there could be, so what we start should not get endlessly many


def most() -> int:
    """What can be had without asking anybody."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(soft, _PLENTY if hard == resource.RLIM_INFINITY else min(hard, _PLENTY))


def allow_most() -> int:
    """Shells give out few, for the sake of programs that cannot handle more. Ours can, and jobs get a limit of their
    own. How many it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most(), hard))
    except (OSError, ValueError):  # some systems name a hard limit that they do not give
        return soft
    return most()


def clusters_within(limit: int) -> int:
    """For how many clusters so many are enough."""
    return max(0, limit - _OWN) // _FOR_EACH
