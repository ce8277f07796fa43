"""Is everything at hand for a real Kubernetes, and who makes what is missing?

`python -m real.kubernetes` makes it, and `scripts/setup.py test` calls that before the tests; a test never does, since
it takes minutes. Fixtures ask `hindrance`, whose answer is the reason a test is left out for.
"""

from real import cache, go_programs
from real.kubernetes import bottle, build, coredns_server, debian, helm_client, images, policy_enforcer

_REMEDY = "HANSA_SETUP_KUBERNETES=yes make test builds it, once, in ten to fifteen minutes"


def hindrance(*, full: bool) -> str:
    """Why there can be no cluster here (a full one, or the API alone); "" if there can."""
    if full and (why := bottle.hindrance() or policy_enforcer.hindrance()):
        return why
    if build.found() is None:
        return go_programs.hindrance() or f"it is not built; {_REMEDY}"
    if full and debian.found() is None:
        return debian.hindrance() or f"a node's Debian parts are not here; {_REMEDY}"
    return ""


def prepare(say: cache.Say) -> bool:
    """Makes what can be made here. False where something is missing, which was said."""
    complete = True
    if build.found() is None and (why := go_programs.hindrance()):
        say(f"tests on a real Kubernetes are left out: {why}")
        return False
    build.build(say)
    if helm_client.found() is None and (why := go_programs.hindrance()):
        say(f"tests with Helm are left out: {why}")
        complete = False
    else:
        helm_client.build(say)
    if coredns_server.found() is None and (why := go_programs.hindrance()):
        say(f"tests that need names in a Kubernetes are left out: {why}")
        complete = False
    else:
        coredns_server.build(say)
    if why := bottle.hindrance() or debian.hindrance():
        say(f"tests on a Kubernetes that runs containers are left out: {why}")
        complete = False
    else:
        debian.fetch(say)
        for make in (images.pause, images.busybox, images.python):
            make()
    return complete
