"""Which times a question may name."""

import pytest

from hansa.resources import BadWindow, Window

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z


def test_the_last_day_is_meant_when_nothing_is_said() -> None:
    assert Window.of("", " ", NOW).shown() == ("2027-01-14T08:00:00Z", "2027-01-15T08:00:00Z")
    assert Window.of("", "2020-01-02T00:00:00Z", NOW).shown()[0] == "2020-01-01T00:00:00Z"


def test_zones_and_fractions_are_understood() -> None:
    window = Window.of("2026-01-02t03:04:05.123456789+02:00", "2026-01-02T03:04:05Z", NOW)
    assert window.shown() == ("2026-01-02T01:04:05.123456Z", "2026-01-02T03:04:05Z")


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("yesterday", ""),
        ("", "2026-01-02"),
        ("", "20260102T030405Z"),
        ("2026-01-02T03:04:05", ""),
        ("2026-13-02T03:04:05Z", ""),
        ("2026-01-02T03:04:60Z", ""),
        ("", "0001-01-01T00:00:00Z"),
        ("", "9999-12-31T23:59:59-23:59"),
        ("2026-01-02T03:04:05Z", "2026-01-01T03:04:05Z"),
        ("2026-01-02T03:04:05\0Z", ""),
    ],
)
def test_odd_times_are_refused(start: str, end: str) -> None:
    with pytest.raises(BadWindow):
        Window.of(start, end, NOW)
