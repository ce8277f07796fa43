"""How does a process with thousands of connections keep its memory small?

Each TLS connection has a buffer of 256 KiB, of which it touches a page or two. The C library takes such a buffer from
the system, where untouched pages cost nothing, until the first one of that size is given back; from then on it hands
out memory that was used before, and the whole buffer counts.
"""

import contextlib
import ctypes

_M_MMAP_THRESHOLD = -3  # glibc's number for it
_LARGE = 128 * 1024


def keep_large_apart() -> None:
    """Large pieces come from the system and go back to it, always. Where the C library knows no such wish, nothing is
    changed."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)
