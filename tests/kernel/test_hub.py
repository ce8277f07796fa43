"""What managers are told to call follows from the settings, or is not told."""

import pytest

from hansa.kernel.hub import HubSettings


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "https://127.0.0.1:7443"),
        ({"members_host": "::1", "members_port": 1}, "https://[::1]:1"),
        ({"members_host": "0.0.0.0"}, ""),
        ({"members_port": 0}, ""),
        ({"members_host": "0.0.0.0", "members_url": "https://hub.example:443"}, "https://hub.example:443"),
    ],
)
def test_where_managers_reach_it(given: dict[str, object], told: str) -> None:
    assert HubSettings.model_validate(given).reached_at == told
