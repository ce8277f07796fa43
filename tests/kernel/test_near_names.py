"""Hints for names that nobody knows, however long these are."""

import tracemalloc

from hansa.kernel.near_names import nearest


def test_the_one_most_like_it() -> None:
    assert nearest("jobs.cpus", ["jobs.cpu", "jobs.keep"]) == "jobs.cpu"
    assert nearest("sextant", ["jobs.cpu", "jobs.keep"]) == ""
    assert nearest("", []) == ""


def test_the_beginning_of_a_long_name_is_enough() -> None:
    """All of it would take fifty times its size, and seconds."""
    name = "jobs.cpu" + "a" * 2_000_000
    tracemalloc.start()
    try:
        nearest(name, ["jobs.cpu", "jobs.keep"])
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
