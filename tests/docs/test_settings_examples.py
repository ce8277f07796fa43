"""Are the settings that README, guides and examples show accepted as they are written, or refused where they say so?"""

import itertools
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hansa.settings import BadSetting, load

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
_ASSIGNMENT = re.compile(r"^(HANSA_[A-Z0-9_]+)=(.*)$", re.DOTALL)


@dataclass(frozen=True)
class Example:
    page: str
    text: str
    kind: str = "variables"
    refused: bool = False

    def load(self, folder: Path) -> None:
        if self.kind == "toml":
            (folder / "hansa.toml").write_text(self.text)
            load(folder / "hansa.toml", {})
        else:
            load(env=variables(self.text))


def variables(command: str) -> dict[str, str]:
    """What stands before a command, as a shell reads it."""
    found: dict[str, str] = {}
    for word in shlex.split(command):
        if (given := _ASSIGNMENT.match(word)) is None:
            break
        found[given[1]] = given[2]
    return found


def pages() -> list[Path]:
    docs = ROOT / "docs"
    named = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "examples").rglob("*.md")]
    return [*named, *(page for page in docs.rglob("*.md") if page.parent.name not in ("reference", "decisions"))]


def examples() -> Iterator[Example]:
    for path in pages():
        page, text = str(path.relative_to(ROOT)), path.read_text()
        for kind, block in _BLOCK.findall(text):
            if kind == "toml":
                yield Example(page, block, kind)
            elif kind in ("sh", "console"):
                yield from commands(page, block)
        for inline in _INLINE.findall(_BLOCK.sub("", text)):
            if inline.startswith("HANSA_") and variables(inline):
                yield Example(page, inline)


def commands(page: str, block: str) -> Iterator[Example]:
    """In a session the program's answer follows a command: `error:` says that the settings are wrong ones."""
    lines = [*block.replace("\\\n", "").splitlines(), ""]
    for line, answer in itertools.pairwise(lines):
        command = line.removeprefix("$ ").strip()
        if command.startswith("HANSA_") and variables(command):
            yield Example(page, command, refused=answer.startswith("error:"))


EXAMPLES = list(examples())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: f"{one.page} {one.text.splitlines()[0][:40]}")
def test_an_example_does_what_its_page_says(example: Example, tmp_path: Path) -> None:
    if example.refused:
        with pytest.raises(BadSetting):
            example.load(tmp_path)
    else:
        example.load(tmp_path)


def test_examples_of_every_kind_are_found() -> None:
    """Or the test above could be true of nothing."""
    assert {"variables", "toml"} == {one.kind for one in EXAMPLES}
    assert {True, False} == {one.refused for one in EXAMPLES}
    assert {"README.md", "CONTRIBUTING.md", "docs/guides/sign-in.md"} <= {one.page for one in EXAMPLES}
