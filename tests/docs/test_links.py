"""Every page can be reached from the index, and no link leads nowhere."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"\[[^\]]*\]\(([^)#]+)[^)]*\)")


def links(page: Path) -> list[Path]:
    return [(page.parent / target).resolve() for target in _LINK.findall(page.read_text()) if "://" not in target]


def pages() -> list[Path]:
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]


def test_no_link_leads_nowhere() -> None:
    broken = [
        f"{page.relative_to(ROOT)} → {target}" for page in pages() for target in links(page) if not target.exists()
    ]
    assert broken == []


def test_every_page_is_in_the_index() -> None:
    docs = ROOT / "docs"
    wanted = {page.resolve() for page in docs.rglob("*.md")} - {docs / "README.md"}
    one_by_one = {page for page in wanted if "decisions" in page.parts and page.name != "README.md"}
    assert wanted - one_by_one - set(links(docs / "README.md")) == set()
