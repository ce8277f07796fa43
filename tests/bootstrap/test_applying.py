"""Settings change in a manager that runs: all of them or none, and what the hub tells no more goes back."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hansa import bootstrap
from hansa.bootstrap import App
from hansa.bootstrap.applying import ADOPTED, Applying, merged
from hansa.federation import live
from hansa.kernel.errors import HansaError
from hansa.services import Waiting
from hansa.settings import Settings
from real.manager import leased_uids


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    tmp_path.chmod(0o711)
    with leased_uids() as uids:
        given = Settings.model_validate(
            {
                "data": tmp_path / "data",
                "admin": {"password": "x"},
                "sandbox": {"uid_base": uids},
                "jobs": {"cpu": "500m", "time_limit": 77},
                "quotas": {"cpu": "3"},
            }
        )
        async with bootstrap.opened(given) as opened:
            yield opened


def in_force(app: App) -> dict[str, Any]:
    """As the parts have it, not as the settings say."""
    limits, quota = app.room.limits, app.quotas.limits("ann@test")
    return {
        "jobs.cpu": app.admission.ledger.cpu,
        "jobs.time_limit": limits.time_limit,
        "jobs.run_limit": limits.run_limit,
        "quotas.cpu": quota.cpu,
        "quotas.enforce": app.quotas.enforced("ann@test") is not None,
        "federation.lost_after": app.follower.lost_after,
        "federation.rescheduler_threshold": app.delegator.threshold,
        "images.allowed": app.allowed_images,
    }


def test_every_live_setting_is_adopted_by_exactly_one() -> None:
    listed = [name for names, _ in ADOPTED for name in names]
    assert sorted(listed) == sorted(live.NAMES)


async def test_settings_come_and_go(app: App) -> None:
    applied, before = Applying(app), in_force(app)
    assert before["jobs.time_limit"] == 77
    applied.apply(
        {
            "jobs": {"cpu": "250m", "time_limit": 5, "run_limit": 6},
            "quotas": {"cpu": "9", "enforce": False},
            "federation": {"lost_after": 8, "rescheduler_threshold": 9, "probe_ttl": 1, "repair_every": 33},
            "images": {"allowed": ["debian"]},
            "membership": {"link_probe_every": 3},
        }
    )
    assert in_force(app) == {
        "jobs.cpu": 250,
        "jobs.time_limit": 5.0,
        "jobs.run_limit": 6.0,
        "quotas.cpu": 9000,
        "quotas.enforce": False,
        "federation.lost_after": 8.0,
        "federation.rescheduler_threshold": 9.0,
        "images.allowed": ("debian",),
    }
    assert app.settings.federation.repair_every == 33
    with pytest.raises(HansaError) as refused:
        await app.allow_images(["alpine"])
    assert refused.value.code == "membership.set-by-hub"
    applied.apply({"images": {"allowed": []}})
    assert not app.allowed_images
    applied.apply({})
    assert in_force(app) == before
    await app.allow_images(["alpine"])
    assert app.allowed_images == ("alpine",)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("name", sorted(live.ONLY_FORBIDDEN))
def test_a_hub_may_forbid_who_is_shown_credentials_and_not_allow_it(name: str, own: bool, told: bool) -> None:
    key = name.removeprefix("federation.")
    given = Settings.model_validate({"federation": {key: own}})
    fresh, named = merged(given, {"federation": {key: told}})
    assert getattr(fresh.federation, key) is (own and told)
    assert named == {name}


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"jobs": {"cpu": "9999"}}, "jobs.cpu: 9999 is more than this machine has"),
    ({"jobs": {"memory": "999Ti"}}, "jobs.memory: 999Ti is more than this machine has"),
    ({"quotas": {"min_disk_per_volume": "9Ti"}}, "quotas.min_disk_per_volume"),
    ({"jobs": {"cpu": "10m"}}, "jobs.cpu: job waits-here waits here and needs more"),
    ({"http": {"port": 1}}, "http.port can only be changed with a restart"),
    ({"jobs": {"of_a_newer_hub": 1}}, "jobs.of_a_newer_hub is not a setting"),
    ({"quotas": {"gpu": "many"}}, "quotas.gpu"),
)


async def test_what_cannot_be_in_force_changes_nothing(app: App) -> None:
    applied = Applying(app)
    app.room.dispatcher.offer(Waiting("waits-here", "gray", "ann@test", 400, 1024))
    applied.apply({"quotas": {"volumes": 2}})
    before, settings = in_force(app), app.settings
    for tree, said in REFUSED:
        with pytest.raises(HansaError, match=said):
            applied.apply({"federation": {"lost_after": 8}} | tree)
        assert (in_force(app), app.settings) == (before, settings)


async def test_a_part_that_fails_half_way_is_put_back(app: App) -> None:
    """No part should; if one does, the others go back."""

    def defect(app: App, fresh: Settings, named: frozenset[str]) -> None:
        if "jobs.run_limit" in named:
            raise RuntimeError("a defect")

    applied, before = Applying(app, (*ADOPTED, (frozenset(), defect))), in_force(app)
    with pytest.raises(HansaError, match="a defect"):
        applied.apply({"jobs": {"run_limit": 5}, "quotas": {"cpu": "9"}})
    assert in_force(app) == before
