"""What is in this checkout? The one place where the architecture tests look at files.

Rules that read the code parse it instead of importing it, so a broken module is reported, not stumbled over.
"""

import ast
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "hansa"

# Rooms with rules of their own and one front door. `kernel` is not among them: it is a vocabulary, and every
# module of it is open to all. `store` and `drivers` are opened by `bootstrap`, which knows all their classes.
AREAS = frozenset(
    {
        "federation",
        "identity",
        "mesh",
        "migration",
        "resources",
        "scheduler",
        "services",
        "storage",
        "vms",
    }
)


@dataclass(frozen=True)
class Module:
    path: Path

    @property
    def name(self) -> str:
        """How a person finds the file."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def room(self) -> str:
        """The room of `src/hansa` that the file stands in; a file such as `settings.py` is its own room."""
        first = self.path.relative_to(PACKAGE).parts[0]
        return first.removesuffix(".py")

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def syntax(self) -> ast.Module:
        return ast.parse(self.text, filename=self.name)

    @property
    def lines(self) -> int:
        return self.text.count("\n")


def product_modules() -> list[Module]:
    return [Module(path) for path in sorted(PACKAGE.rglob("*.py"))]


def python_modules() -> list[Module]:
    """All Python of the checkout: the product, its tests, scripts, benchmarks and examples."""
    return [Module(path) for path in tracked_files() if path.suffix == ".py"]


def front_door(area: str) -> Module:
    return Module(PACKAGE / area / "__init__.py")


def open_areas() -> list[str]:
    """Areas that have built their front door; an empty `__init__.py` is one still to be built."""
    doors = {area: front_door(area) for area in sorted(AREAS)}
    return [area for area, door in doors.items() if door.path.is_file() and door.syntax.body]


def inner_modules(area: str) -> set[str]:
    """The modules and packages right behind an area's front door."""
    folder = PACKAGE / area
    if not folder.is_dir():
        return set()
    files = {path.stem for path in folder.glob("*.py")}
    return (files | {path.parent.name for path in folder.glob("*/__init__.py")}) - {"__init__"}


def tracked_files() -> list[Path]:
    """What git has on record; without git (a tarball, a bare machine) whatever `.gitignore` does not name."""
    git = shutil.which("git")
    if git is not None and (ROOT / ".git").exists():
        listing = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, timeout=30, check=False)
        if listing.returncode == 0:
            paths = [ROOT / name for name in listing.stdout.decode().split("\0") if name]
            return [path for path in paths if path.is_file()]  # one deleted but not committed is no file
    return sorted(_walk(ROOT, _ignored_names()))


def _ignored_names() -> set[str]:
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    return {line.rstrip("/") for line in lines} | {".git"}


def _walk(folder: Path, ignored: set[str]) -> Iterator[Path]:
    for path in folder.iterdir():
        if any(path.match(pattern) for pattern in ignored):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path, ignored)
        elif path.is_file():
            yield path
