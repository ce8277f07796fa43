"""One rough manager for the faults that a manager survives; tests that kill it start their own."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import pytest

from journeys.faults.scene import Scene
from real import parts
from real.manager import running_manager


class StartScene(Protocol):
    """Starts a manager that ends with the test."""

    def __call__(self, settings: Mapping[str, Any] | None = None, *, database: str = "") -> Scene: ...


@contextlib.contextmanager
def running_scene(settings: Mapping[str, Any] | None = None, *, database: str = "") -> Iterator[Scene]:
    parts.require("bubblewrap")
    if os.geteuid() != 0:
        parts.give_up("root", "jobs have users of their own, by whom their processes are found, only under root")
    with running_manager(settings, database=database) as manager:
        scene = Scene(manager)
        try:
            yield scene
        finally:
            scene.close()


@pytest.fixture(scope="session")
def rough() -> Iterator[Scene]:
    """Its store and its launcher get killed now and then."""
    with running_scene({"sandbox.processes": 32}) as scene:
        yield scene


@pytest.fixture
def start_scene() -> Iterator[StartScene]:
    with contextlib.ExitStack() as undo:

        def start(settings: Mapping[str, Any] | None = None, *, database: str = "") -> Scene:
            return undo.enter_context(running_scene(settings, database=database))

        yield start
