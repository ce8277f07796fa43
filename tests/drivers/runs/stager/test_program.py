"""Does the manager hear why files could not be moved, whatever they and the keys are called?"""

import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hansa.drivers.runs.stager import program
from hansa.drivers.runs.stager.plan import Fetch, Output, Plan, Store


class _Channel:
    """To a server that hears, and says nothing."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.said: list[str] = []

    def say(self, level: str, text: str) -> None:
        self.said.append(text)

    def dial(self, store: int) -> tuple[socket.socket | None, str, bool]:
        return socket.create_connection(("127.0.0.1", self._port)), "", False

    def sign(
        self, store: int, method: str, bucket: str, key: str, query: Mapping[str, str], payload: str
    ) -> dict[str, str] | None:
        return None


@pytest.fixture
def channel() -> Iterator[_Channel]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield _Channel(listening.getsockname()[1])


def moved(way: str, plan: Plan, channel: _Channel, folder: Path) -> dict[str, Any]:
    (folder / "input").mkdir(exist_ok=True)
    job = os.open(folder, os.O_RDONLY)
    try:
        return program.run(way, plan.to_json(), channel, job, -1)
    finally:
        os.close(job)


@pytest.mark.parametrize(("access_key", "key"), [("ключ", "k"), ("a\nb", "k"), ("\ud800", "k"), ("key", "in/\ud800")])
def test_odd_letters_of_an_input_are_refused(channel: _Channel, tmp_path: Path, access_key: str, key: str) -> None:
    store = Store("s3", "http://127.0.0.1:9", access_key=access_key, secret_key="secret")
    told = moved("bring", Plan(stores=(store,), input=Fetch(0, "b", key, "f"), patience=1), channel, tmp_path)
    assert "letters that cannot be sent" in told["failed"]
    assert not told.get("temporary")
    told["failed"].encode()  # it is written to the log


@pytest.mark.parametrize(("kind", "access_key"), [("webdav", "\ud800"), ("s3", "ключ")])
def test_odd_letters_of_the_keys_for_an_output_are_refused(
    channel: _Channel, tmp_path: Path, kind: str, access_key: str
) -> None:
    (tmp_path / "output").mkdir()
    (tmp_path / "output" / "x").touch()
    store = Store(kind, "http://127.0.0.1:9", access_key=access_key, secret_key="secret")
    told = moved("carry", Plan(stores=(store,), outputs=(Output(0, "b", "out"),), patience=1), channel, tmp_path)
    assert "letters that cannot be sent" in told["failed"]
