"""Only settings a manager can change while it runs may be told, each with a value it can have."""

from typing import Any

import pytest

from hansa.federation import live
from hansa.kernel.errors import HansaError
from hansa.settings import BadSetting, Settings, names


def test_every_live_setting_is_a_setting() -> None:
    assert set(names()) >= live.NAMES


def test_every_default_of_a_live_setting_is_taken() -> None:
    defaults = Settings().model_dump(mode="json")
    tree = live.grown({name: defaults[name.split(".")[0]][name.split(".")[1]] for name in live.NAMES})
    assert live.validated(tree) == tree


def test_values_are_written_in_one_way() -> None:
    given = {"jobs": {"keep": 7200, "cpu": 2}, "images": {"allowed": ["a"]}}
    assert live.validated(given) == {"images": {"allowed": ["a"]}, "jobs": {"cpu": "2", "keep": 7200.0}}


@pytest.mark.parametrize(
    ("tree", "code", "said"),
    [
        ({"jobs": {"cpus": "2"}}, "federation.not-live", "did you mean jobs.cpu?"),
        ({"http": {"port": 80}}, "federation.not-live", "restart"),
        ({"sextant": {"angle": 1}}, "federation.not-live", "lists them all"),
        ({"jobs": {"cpu": [2]}}, "settings.invalid", "must be a text"),
        ({"jobs": {"cpu": True}}, "settings.invalid", "must be a text"),
        ({"jobs": {"cpu": -2}}, "settings.invalid", "quantity"),
        ({"jobs": {"cpu": "much"}}, "settings.invalid", "not a quantity"),
        ({"jobs": 3}, "settings.invalid", "table"),
        ({"jobs.cpu": "2"}, "settings.invalid", "table"),
        ({"log": {"level": "loud"}}, "settings.invalid", "'debug'"),
        ({"federation": {"lost_after": "inf"}}, "settings.invalid", "number"),
        ({"federation": {"lost_after": float("inf")}}, "settings.invalid", "number"),
        ({"federation": {"lost_after": -1}}, "settings.invalid", "greater than or equal to 1"),
        ({"quotas": {"gpu": True}}, "settings.invalid", "whole number"),
        ({"quotas": {"gpu": None}}, "settings.invalid", "whole number"),
    ],
)
def test_what_is_refused_says_why(tree: dict[str, Any], code: str, said: str) -> None:
    with pytest.raises(HansaError) as refused:
        live.validated(tree)
    assert refused.value.code == code
    assert said in f"{refused.value.message} {refused.value.hint}"


@pytest.mark.parametrize(
    "name",
    [
        "federation.lost_after",
        "federation.probe_ttl",
        "federation.repair_every",
        "federation.rescheduler_threshold",
        "federation.wait_at_members",
        "jobs.keep",
        "jobs.run_limit",
        "jobs.time_limit",
        "membership.link_probe_every",
    ],
)
@pytest.mark.parametrize("seconds", [0, 1e-300, 0.01])
def test_no_hub_makes_a_manager_forget_everything_or_hurry_for_ever(name: str, seconds: float) -> None:
    group, _, key = name.partition(".")
    with pytest.raises(BadSetting, match="greater than or equal to"):
        live.validated({group: {key: seconds}})
