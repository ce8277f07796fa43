"""How does a process with thousands of connections use memory well, and is not stopped by looking after it?"""

import contextlib
import ctypes
import gc

_M_MMAP_THRESHOLD = -3  # glibc's number for it
_LARGE = 128 * 1024
_YOUNG, _OLDER = 10_000, 20


def keep_large_apart() -> None:
    """Large pieces come from the system and go back to it, always. Each TLS connection has a buffer of 256 KiB of which
    it touches a page or two; once one of that size was given back, glibc would hand out memory that was used before
    instead, and the whole buffer would count. Where the C library knows no such wish, nothing is changed."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)


def look_less_often() -> None:
    """What was loaded by now stays to the end, so the collector of cycles need not go through it again; and it looks at
    the rest less often, for nearly everything here ends by itself. Each of its rounds stops all else."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _OLDER, _OLDER)
