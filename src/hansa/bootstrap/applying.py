"""How is a setting changed in a manager that runs? All of a tree or nothing of it, on top of the manager's own.

`live.NAMES` says which settings can be told; each is in one row of `ADOPTED`. A row takes the whole new settings and
must not wait or fail half-way, so that putting everything back is the same as applying what was before.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from hansa import settings
from hansa.bootstrap import log_level
from hansa.bootstrap.app import App
from hansa.federation import live, member
from hansa.kernel import quantities
from hansa.kernel.errors import HansaError
from hansa.resources import Limits as QuotaLimits
from hansa.resources import Needs
from hansa.services import Limits, Share
from hansa.settings import Settings

SettingRefused = member.errors.SettingRefused
Adopt = Callable[[App, Settings, frozenset[str]], None]


def limits_of(given: Settings) -> Limits:
    jobs = given.jobs
    return Limits(
        time_limit=jobs.time_limit,
        run_limit=jobs.run_limit,
        attempts=jobs.attempts,
        queue_limit=jobs.queue_limit,
        keep=jobs.keep,
        page_size=jobs.page_size,
        share=Share(jobs.queue_limit_per_owner, jobs.queue_size_per_owner),
        hop_limit=given.federation.hop_limit,
        call_timeout=given.federation.call_timeout,
        wait_at_members=given.federation.wait_at_members,
        oscar_members=given.federation.oscar_members,
        oscar_refresh_tokens=given.federation.oscar_refresh_tokens,
        restore_replicas=given.federation.restore_replicas,
        keep_receipts=given.federation.keep_receipts,
        keep_audit=given.audit.keep,
    )


def _limits(app: App, fresh: Settings, _named: frozenset[str]) -> None:
    app.room.limits = limits_of(fresh)


def _capacity(app: App, fresh: Settings, _named: frozenset[str]) -> None:
    app.nodes.adopt(fresh.jobs)
    app.resize()


def _quotas(app: App, fresh: Settings, _named: frozenset[str]) -> None:
    app.quotas.adopt(fresh.quotas)
    app.quota_news.set()


def _delegation(app: App, fresh: Settings, _named: frozenset[str]) -> None:
    app.delegator.threshold = fresh.federation.rescheduler_threshold
    app.follower.lost_after = fresh.federation.lost_after
    app.room.prober.adopt(ttl=fresh.federation.probe_ttl)


def _images(app: App, fresh: Settings, named: frozenset[str]) -> None:
    app.told_images = fresh.images.allowed if "images.allowed" in named else None


def _log(_app: App, fresh: Settings, _named: frozenset[str]) -> None:
    log_level.set_level(fresh.log.level)


def _membership(app: App, fresh: Settings, _named: frozenset[str]) -> None:
    app.membership.adopt(fresh.membership)


def _nothing(_app: App, _fresh: Settings, _named: frozenset[str]) -> None:
    """Whoever uses it asks `app.settings` each time."""


ADOPTED: tuple[tuple[frozenset[str], Adopt], ...] = (
    (frozenset({"jobs.keep", "jobs.run_limit", "jobs.time_limit"}), _limits),
    (frozenset(name for name in live.NAMES if name.startswith("federation.oscar_")), _limits),
    (frozenset({"federation.restore_replicas", "federation.wait_at_members"}), _limits),
    (frozenset(name for name in live.NAMES if name.startswith("jobs.queue_")), _limits),
    (frozenset({"jobs.cpu", "jobs.memory"}), _capacity),
    (frozenset(name for name in live.NAMES if name.startswith("quotas.")), _quotas),
    (frozenset({"federation.lost_after", "federation.probe_ttl", "federation.rescheduler_threshold"}), _delegation),
    (frozenset({"federation.repair_every"}), _nothing),
    (frozenset({"images.allowed"}), _images),
    (frozenset({"log.level"}), _log),
    (frozenset({"membership.link_probe_every"}), _membership),
)


class Applying:
    def __init__(self, app: App, adopted: tuple[tuple[frozenset[str], Adopt], ...] = ADOPTED) -> None:
        self._app = app
        self._adopted = adopted
        self._own = app.settings
        self._named: frozenset[str] = frozenset()  # the settings that are the hub's now

    def apply(self, tree: Mapping[str, Any]) -> None:
        """Raises a `HansaError` that says which setting was refused and why; then nothing is changed."""
        fresh, named = merged(self._own, tree)
        if (fresh, named) == (self._app.settings, self._named):
            return
        self._check(fresh, named)
        former, formerly = self._app.settings, self._named
        try:
            self._adopt(fresh, named)
        except Exception as error:
            self._adopt(former, formerly)
            why = error.message if isinstance(error, HansaError) else f"{type(error).__name__}: {error}"
            raise SettingRefused(f"the settings could not be put in force: {why}") from error

    def _adopt(self, fresh: Settings, named: frozenset[str]) -> None:
        self._app.settings, self._named = fresh, named
        for _, adopt in self._adopted:
            adopt(self._app, fresh, named)

    def _check(self, fresh: Settings, named: frozenset[str]) -> None:
        """What only this machine knows."""
        there, jobs = self._app.nodes.whole(), fresh.jobs
        if "jobs.cpu" in named and jobs.cpu and quantities.millicores(jobs.cpu) > there.cpu:
            raise SettingRefused(f"jobs.cpu: {jobs.cpu} is more than this machine has ({there.cpu}m)")
        if "jobs.memory" in named and jobs.memory and quantities.size(jobs.memory) > there.memory:
            has = quantities.show_size(there.memory)
            raise SettingRefused(f"jobs.memory: {jobs.memory} is more than this machine has ({has})")
        if named & {"jobs.cpu", "jobs.memory"}:
            self._check_waiting(fresh)
        limits = QuotaLimits.of(fresh.quotas)
        if limits.min_disk_per_volume > limits.max_disk_per_volume:
            raise SettingRefused("quotas.min_disk_per_volume: it is more than quotas.max_disk_per_volume")

    def _check_waiting(self, fresh: Settings) -> None:
        """A job that was accepted must not become impossible."""
        capacity = self._app.nodes.capacity_with(fresh.jobs)
        for waiting in self._app.room.dispatcher.lined_up():
            if self._app.room.dispatcher.never_fits(Needs(waiting.cpu, waiting.memory)):
                continue  # it waits for a member with more room anyway
            for name, needs, has in (
                ("jobs.cpu", waiting.cpu, capacity.cpu),
                ("jobs.memory", waiting.memory, capacity.memory),
            ):
                if needs > has:
                    raise SettingRefused(f"{name}: job {waiting.name} waits here and needs more than that")


def merged(own: Settings, tree: Mapping[str, Any]) -> tuple[Settings, frozenset[str]]:
    """The manager's own settings with the tree's on top, and the names of these. What `ONLY_FORBIDDEN` names is allowed
    if both allow it."""
    told = live.validated(tree)
    whole = settings.read_json(msgspec.json.encode(told))
    names = frozenset(name for name, _ in live.leaves(told))
    groups: dict[str, Any] = {}
    for name in sorted(names):
        group, _, key = name.partition(".")
        former = groups.get(group, getattr(own, group))
        value = getattr(getattr(whole, group), key)
        if name in live.ONLY_FORBIDDEN:
            value = value and getattr(former, key)
        groups[group] = former.model_copy(update={key: value})
    return own.model_copy(update=groups), names
