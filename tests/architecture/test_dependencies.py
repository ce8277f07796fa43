"""Is every dependency pinned, and does no file tie us to one registry?

Which registry or mirror serves a package is the machine's configuration; the hashes make them all equal.
"""

import re
from pathlib import Path

import pytest

from architecture import tree

REQUIREMENTS = tree.ROOT / "requirements"
LOCKS = sorted(REQUIREMENTS.glob("*.txt"))

# Host names are written as patterns, so that this file does not name what it forbids. Container registries
# are not among them: an image name is what users write into their services, not where our parts come from.
REGISTRIES = re.compile(
    r"""
    \b(?: (?:test\.)? pypi\.org | pythonhosted\.org | registry\.npmjs\.org | registry\.yarnpkg\.com
      | crates\.io | proxy\.golang\.org | rubygems\.org | repo1?\.maven\.org | conda\.anaconda\.org
      | (?:deb|security)\.debian\.org | archive\.ubuntu\.com
    )\b
    | ^\s*(?: --(?:extra-)?index-url | --find-links | -i\s+https? )
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)


def pins(lock: str) -> dict[str, str]:
    """Package to exact requirement (version and marker), from the lines that are not hashes."""
    text = (REQUIREMENTS / lock).read_text(encoding="utf-8")
    lines = [line.rstrip("\\ ") for line in text.splitlines() if line and not line[0].isspace()]
    return {line.split("==")[0]: line for line in lines}


def test_no_file_names_a_registry() -> None:
    found = []
    for path in tree.tracked_files():
        text = path.read_bytes().decode("utf-8", errors="ignore")
        found += [
            f"{path.relative_to(tree.ROOT)}:{text.count(chr(10), 0, hit.start()) + 1} {hit.group().strip()}"
            for hit in REGISTRIES.finditer(text)
        ]
    assert not found, "leave the registry to the machine's configuration:\n" + "\n".join(found[:20])


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_pin_has_its_hash(lock: Path) -> None:
    entries = re.split(r"\n(?=\S)", lock.read_text(encoding="utf-8").strip())
    bare = [entry.split("\n")[0] for entry in entries if "==" not in entry or "--hash=sha256:" not in entry]
    assert not bare, f"`make lock` pins with hashes: {bare}"


def test_tests_run_on_what_users_run() -> None:
    run, dev = pins("run.txt"), pins("dev.txt")
    versions = {name: (line, dev.get(name)) for name, line in run.items()}
    other = {name: pair for name, pair in versions.items() if pair[1] is None or version(pair[0]) != version(pair[1])}
    assert not other, f"`make lock` keeps both locks in step: {other}"


def version(pin: str) -> str:
    return pin.partition(";")[0].partition("==")[2].strip()
