"""What becomes of an embedded store whose files were cut short?"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hansa.drivers.s3.errors import StoreKeysLost
from hansa.drivers.s3.seaweed_home import Home

BROKEN = ["", "{", "null", "[]", '"text"', "{}", '{"s3": 1, "else": 2}', "\xff"]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    opened = Home(tmp_path / "objects", "127.0.0.1")
    yield opened
    opened.close()


@pytest.mark.parametrize("content", [*BROKEN, '{"master": "a", "volume": 1, "filer": 2, "s3": 3, "admin": 4}'])
def test_ports_are_chosen_anew(home: Home, content: str) -> None:
    (home.folder / "ports.json").write_text(content, "latin-1")
    chosen = home.ports()
    assert chosen.apart()
    assert home.ports() == chosen


@pytest.mark.parametrize("content", [*BROKEN, '{"root_access_key": null}'])
def test_keys_are_not(home: Home, content: str) -> None:
    """New ones would open nothing that is in the store."""
    path = home.folder / "keys.json"
    path.write_text(content, "latin-1")
    with pytest.raises(StoreKeysLost, match=str(path)) as refusal:
        home.secrets()
    assert "put back" in refusal.value.hint
    assert path.read_text("latin-1") == content


def test_what_was_written_is_read(home: Home) -> None:
    assert home.secrets() == home.secrets()
    assert home.ports() == home.ports()
