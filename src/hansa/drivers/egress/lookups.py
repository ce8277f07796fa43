"""How are names looked up, so that one whose name server never answers holds up nobody else?

A lookup is a thread until the system's resolver gives up, however long ago the caller did. So nobody has more than a
few at a time: neither whoever asks, nor, where that is not known, the domain that is asked about.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakValueDictionary

Resolve = Callable[[str], Sequence[str]]  # blocks; raises `OSError` for a name that leads nowhere

_EACH = 4  # lookups at a time
_DOMAIN = 2  # labels


def system_resolver(host: str) -> list[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(where[0]) for *_, where in found))


def domain_of(host: str) -> str:
    """For names whose asker is not known. Some domains of many owners are one here; they share, and no more."""
    return ".".join(host.lower().rstrip(".").split(".")[-_DOMAIN:])


class Lookups:
    """One lane of them: `most` threads."""

    def __init__(self, resolve: Resolve, most: int, name: str) -> None:
        self._resolve = resolve
        self._threads = ThreadPoolExecutor(most, thread_name_prefix=name)
        self._places: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def addresses(self, host: str, whose: str) -> Sequence[str]:
        """What the resolver says; whoever has too many lookups under way waits for their own."""
        places = self._places.setdefault(whose, asyncio.Semaphore(_EACH))
        await places.acquire()
        try:
            looking = asyncio.get_running_loop().run_in_executor(self._threads, self._resolve, host)
        except BaseException:
            places.release()
            raise

        def over(_: object) -> None:
            places.release()
            if not looking.cancelled():
                looking.exception()  # its caller may have gone

        looking.add_done_callback(over)
        return await asyncio.shield(looking)  # the thread goes on without its caller, and so does its place

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
