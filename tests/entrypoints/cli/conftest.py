"""A place of its own for each test: no profiles, no variables, and a small real HTTP server at hand."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from entrypoints.cli.small_server import Hansa, Ran, SmallServer
from hansa.entrypoints.cli.app import run


def _is_ours(name: str) -> bool:
    return name.startswith("HANSA_") and not name.startswith("HANSA_TEST_")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if _is_ours(name) or name.lower().endswith("_proxy") or name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def server() -> Iterator[SmallServer]:
    with SmallServer() as small:
        yield small


@pytest.fixture
def hansa(capsys: pytest.CaptureFixture[str]) -> Hansa:
    """Runs one command line in this process."""

    def call(*arguments: str) -> Ran:
        capsys.readouterr()
        code = run(list(arguments))
        out, err = capsys.readouterr()
        return Ran(int(code), out, err)

    return call


@pytest.fixture
def admin(server: SmallServer, monkeypatch: pytest.MonkeyPatch) -> SmallServer:
    """The small server, chosen as the cluster, with a Basic sign-in."""
    monkeypatch.setenv("HANSA_URL", server.url)
    monkeypatch.setenv("HANSA_USER", "oscar")
    monkeypatch.setenv("HANSA_PASSWORD", "secret-word")
    return server
