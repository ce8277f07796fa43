"""What did a synchronous run give back? One file comes as base64, several as a base64 zip, else plain text.

`run` calls `decode`, and `save` to put the result where the person wants it.
"""

import base64
import binascii
import io
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hansa.kernel import errors

_HEX = re.compile(rb"[0-9a-f]*")  # numbers and digests are text, though base64 could read them


@dataclass(frozen=True, slots=True)
class Answer:
    content: bytes
    archive: bool = False

    def names(self) -> list[str]:
        if not self.archive:
            return []
        with zipfile.ZipFile(io.BytesIO(self.content)) as archive:
            return [entry.filename for entry in archive.infolist() if not entry.is_dir()]


def decode(body: bytes, *, raw: bool = False) -> Answer:
    """The files or text in an answer.

    A short word such as "done" could pass for base64, so what decodes to no readable text stays as it came.
    """
    if raw or _HEX.fullmatch(body.strip()):
        return Answer(body)
    try:
        decoded = base64.b64decode(body.strip(), validate=True)
    except (binascii.Error, ValueError):
        return Answer(body)
    if zipfile.is_zipfile(io.BytesIO(decoded)):
        return Answer(decoded, archive=True)
    if len(body) < 24 and not _is_text(decoded):
        return Answer(body)
    return Answer(decoded)


def _is_text(content: bytes) -> bool:
    try:
        return content.decode().isprintable() or b"\n" in content
    except UnicodeDecodeError:
        return False


def save(answer: Answer, target: Path, *, name: str = "output") -> list[Path]:
    """Writes the answer to a file, or its files into a folder; gives the paths written."""
    folder = target.is_dir() or str(target).endswith("/")
    try:
        if answer.archive and (folder or not target.suffix):
            return _extract(answer.content, target)
        if folder:
            target.mkdir(parents=True, exist_ok=True)
            target = target / name
        target.write_bytes(answer.content)
    except OSError as error:
        raise errors.Invalid(f"cannot write {target}: {error.strerror}", hint="give another --output") from None
    return [target]


def _extract(content: bytes, folder: Path) -> list[Path]:
    written = []
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for entry in archive.infolist():
            inside = PurePosixPath(entry.filename)
            if inside.is_absolute() or ".." in inside.parts or "\\" in entry.filename:
                raise errors.Invalid(f"the result holds a file outside its folder: {entry.filename!r}")
            path = folder.joinpath(*inside.parts)
            if entry.is_dir():
                path.mkdir(parents=True, exist_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as source, path.open("wb") as file:
                while piece := source.read(1 << 20):
                    file.write(piece)
            written.append(path)
    return written
