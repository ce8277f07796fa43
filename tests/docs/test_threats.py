"""Does every claim of the page on threats name a test, and is that test there?"""

import re
from pathlib import Path

import pytest

from hansa.services import fdl_fields

TESTS = Path(__file__).parent.parent
PAGE = TESTS.parent / "docs" / "concepts" / "threats.md"
_NAMED = re.compile(r"`((?:[a-z0-9_]+/)+[a-z0-9_]+\.py)(?:::(test_[a-z0-9_]+))?`")


def named() -> list[tuple[str, str]]:
    return [(found[1], found[2] or "") for found in _NAMED.finditer(PAGE.read_text())]


@pytest.mark.parametrize(("path", "name"), sorted(set(named())))
def test_what_it_names_is_there(path: str, name: str) -> None:
    file = TESTS / path
    assert file.is_file(), f"docs/concepts/threats.md names {path}, which is gone: name the test that shows it now"
    assert re.search(rf"^\s*(?:async )?def {name or 'test_[a-z0-9_]+'}\(", file.read_text(), re.MULTILINE), (
        f"docs/concepts/threats.md names {path}::{name}, which is gone: name the test that shows it now"
    )


def test_every_claim_names_a_test() -> None:
    columns: list[str] = []
    for line in PAGE.read_text().splitlines():
        if not line.startswith("|"):
            columns = []
            continue
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not columns:
            columns = cells
        elif columns[-1] == "shown by" and not line.startswith("|---"):
            assert _NAMED.search(cells[-1]), f"no test is named: {line}"


def first_cells(title: str) -> str:
    """What the tables below this heading speak of."""
    section = PAGE.read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
    return "\n".join(line.split(" | ")[0] for line in section.splitlines() if line.startswith("|"))


@pytest.mark.parametrize("field", sorted(fdl_fields.SERVICE))
def test_every_field_of_a_definition_stands_there(field: str) -> None:
    rows = first_cells("What is believed of what is written")
    assert re.search(rf"`{field}[`.]", rows), f"docs/concepts/threats.md does not say what is believed of {field}"
