"""Part of a suite in a process of its own, so that its work is not counted with what is measured.

`python -m <module>` reads orders as JSON lines, answers each with one, and ends with its input.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from bench import ROOT

_END_SECONDS = 10.0
Do = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


class Partner:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, **order: Any) -> dict[str, Any]:
        self.order(**order)
        return self.answer()

    def order(self, **order: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args!r} ended with {self._process.wait(_END_SECONDS)}")
        return dict(json.loads(line))


@contextlib.contextmanager
def partner(module: str, **order: Any) -> Iterator[Partner]:
    """Has got its first order when the block begins."""
    process = subprocess.Popen(
        [sys.executable, "-m", module], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        found = Partner(process)
        found.ask(**order)
        yield found
    finally:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


async def serve(do: Do) -> None:
    """The other side: `do` gets every order but the first."""
    print("{}", flush=True)
    while order := await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(await do(json.loads(order))), flush=True)


def first_order() -> dict[str, Any]:
    return dict(json.loads(sys.stdin.readline()))
