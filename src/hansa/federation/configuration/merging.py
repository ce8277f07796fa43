"""What does a cluster's configuration come to, and which document has the say in each setting?"""

from typing import Any

from hansa.federation import acting, desired, live
from hansa.federation.configuration import assigning, observing
from hansa.federation.registry import Known
from hansa.federation.room import Hub
from hansa.messages.configuration import Effective, Origin


def effective(hub: Hub, cluster: str) -> Effective:
    """The merged settings of one cluster, with where every value comes from and whose lost."""
    known, now = acting.get(hub, cluster), hub.clock.now()
    said: dict[str, list[tuple[str, int, Any]]] = {}
    for part in assigning.parts(hub.shelf, known):
        for setting, value in live.leaves(assigning.settings_of(part.record)):
            said.setdefault(setting, []).append((part.name, part.record.version, value))
    origins = []
    for setting, sources in sorted(said.items()):
        name, version, value = sources[-1]
        losers = tuple(source for source, _, _ in sources[:-1])
        origins.append(Origin(setting=setting, value=value, document=name, version=version, overrides=losers))
    settings, _ = assigning.told(hub.shelf, known)
    return Effective(
        cluster=cluster,
        settings=settings,
        origins=tuple(origins),
        desired=desired.generation(hub, cluster),
        applied=observing.sight(hub, known, now).applied.generation,
        drift=_drift(hub, known, now),
    )


def _drift(hub: Hub, known: Known, now: float) -> str:
    documents = assigning.assignments(hub.shelf)
    told = [
        f"{name}: should have {version(one.desired)}, has {version(one.applied)} ({one.state}"
        + (f": {one.error})" if one.error else ")")
        for name, one in observing.of_cluster(hub, known, documents, now)
        if one.desired != one.applied
    ]
    return "; ".join(told)


def version(number: int) -> str:
    return f"version {number}" if number else "none"
