"""What did the pods of exposed services print lately? Followed while they run, some lines of each kept in memory."""

import asyncio
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import httpx2
from lightkube import AsyncClient

from hansa.drivers.kubernetes import pod_status, pods
from hansa.services import LogLine

_KEPT = 1000
_LONGEST_LINE = 8192
_MOST_LINES = 5000  # a second of one pod, of which a few are kept
_AT_ONCE = 100


class LogTails:
    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._lines: dict[str, deque[str]] = {}
        self._following: dict[tuple[str, int], asyncio.Task[None]] = {}  # by pod and how often it was started

    def last(self, service: str, tail: int) -> Sequence[LogLine]:
        lines = self._lines.get(service, ())
        return tuple(_read(line) for line in (tuple(lines)[-tail:] if tail > 0 else ()))

    def look(self, service: str, pod: Any) -> None:
        """Follows what a pod prints, if it runs and nobody does."""
        status = pod_status.container(pod)
        if status is None or status.state is None:
            return
        if status.state.running is None and status.state.terminated is None:
            return
        life = (pod.metadata.uid, status.restartCount)
        if life not in self._following:
            lines = self._lines.setdefault(service, deque(maxlen=_KEPT))
            self._following[life] = asyncio.create_task(
                self._follow(pod.metadata.name, pod.metadata.namespace, lines), name=f"log of {pod.metadata.name}"
            )

    async def forget(self, service: str) -> None:
        self._lines.pop(service, None)
        await self._drop([life for life, task in self._following.items() if task.done()])

    async def close(self) -> None:
        await self._drop(list(self._following))

    async def _drop(self, lives: list[tuple[str, int]]) -> None:
        tasks = [self._following.pop(life) for life in lives]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, pod: str, namespace: str, lines: deque[str]) -> None:
        """Until the container ends. What is lost with a connection is lost: a log of days is no place for truth.
        Little is done with each line, and whoever prints too many waits: others want their turn too."""
        came = 0
        try:
            async for line in self._client.log(
                pod, namespace=namespace, container=pods.SCRIPT, follow=True, timestamps=True, newlines=False
            ):
                lines.append(line[:_LONGEST_LINE])
                came += 1
                if came % _AT_ONCE == 0:
                    await asyncio.sleep(_AT_ONCE / _MOST_LINES)
        except (httpx2.HTTPError, OSError):
            return


def _read(line: str) -> LogLine:
    stamp, _, text = line.partition(" ")
    return LogLine(_moment(stamp), text)


def _moment(stamp: str) -> float:
    """Kubernetes gives nanoseconds, Python takes microseconds."""
    try:
        whole, _, part = stamp.rstrip("Z").partition(".")
        return datetime.fromisoformat(f"{whole}.{part[:6].ljust(6, '0')}+00:00").timestamp()
    except ValueError:
        return 0.0
