"""Cycles are collected when memory has grown, and only then."""

import gc
import subprocess
import sys
import weakref

from hansa.bootstrap import memory

_MIB = 2**20
_PROGRAM = """
import gc
from hansa.bootstrap import memory
memory.look_only_when_grown()
print(gc.isenabled(), gc.get_freeze_count() > 1000)
"""


class _Ring:
    def __init__(self) -> None:
        self.me = self


def test_a_cycle_ends_once_memory_has_grown_by_a_quarter() -> None:
    has = [400 * _MIB]
    growth = memory.Growth(lambda: has[0])
    ring = weakref.ref(_Ring())
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        has[0] = 500 * _MIB
        assert not growth.look()
        assert ring() is not None
        has[0] = 540 * _MIB
        assert growth.look()
        assert ring() is None
        assert not growth.look(), "what is needed after all is no growth any more"
    finally:
        if was_enabled:
            gc.enable()


def test_a_small_process_may_grow_a_little() -> None:
    has = [10 * _MIB]
    growth = memory.Growth(lambda: has[0])
    has[0] = 40 * _MIB
    assert not growth.look()
    has[0] = 50 * _MIB
    assert growth.look()


def test_memory_is_what_the_system_says() -> None:
    before = memory.resident()
    much = bytearray(64 * _MIB)
    much[::4096] = b"x" * len(much[::4096])
    assert memory.resident() - before > 48 * _MIB


def test_after_the_start_there_are_no_rounds_but_ours() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["False", "True"]
