"""How does a container image look as a file? Writes OCI archives with nothing but the standard library.

Layers are folders. Times and owners are left out, so what is made of the same files is the same archive byte for byte,
and a layer that did not change keeps its digest: the runtime has it already. Used by `images.py`.
"""

import gzip
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

_MEDIA = "application/vnd.oci.image"
_PLATFORM = {"architecture": "amd64", "os": "linux"}
_TOP = PurePosixPath("/")


@dataclass(frozen=True, slots=True)
class Layer:
    """The files of `folder`, seen in the container below `place`."""

    folder: Path
    place: PurePosixPath = _TOP

    def files(self) -> Iterator[tuple[Path, str]]:
        """Every file and folder with its path in the image, in an order that is always the same."""
        for path in sorted(self.folder.rglob("*")):
            yield path, str((self.place / path.relative_to(self.folder)).relative_to(_TOP))

    def fingerprint(self) -> str:
        """Another one whenever the layer's archive would be another."""
        seen = hashlib.sha256(str(self.place).encode())
        for path, name in self.files():
            facts: list[str] = [name, oct(path.lstat().st_mode)]
            if path.is_symlink():
                facts.append(os.readlink(path))
            elif path.is_file():
                facts.append(hashlib.sha256(path.read_bytes()).hexdigest())
            seen.update(json.dumps(facts).encode())
        return seen.hexdigest()


@dataclass(frozen=True, slots=True)
class Config:
    """What a container of the image does when nobody tells it otherwise."""

    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    user: str = ""
    folder: str = "/"

    def document(self) -> dict[str, Any]:
        variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", **self.environment}
        words = {
            "Entrypoint": list(self.entrypoint),
            "Cmd": list(self.command),
            "Env": [f"{name}={value}" for name, value in sorted(variables.items())],
            "User": self.user,
            "WorkingDir": self.folder,
        }
        return {name: value for name, value in words.items() if value}


def write(archive: Path, name: str, layers: Sequence[Layer], config: Config) -> None:
    """An archive for `ctr images import`, which gives the image its name."""
    blobs: dict[str, bytes] = {}

    def blob(kind: str, content: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        return {"mediaType": f"{_MEDIA}.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    plain = [_tar(layer) for layer in layers]
    packed = [blob("layer.v1.tar+gzip", gzip.compress(one, 1, mtime=0)) for one in plain]
    rootfs = {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(one).hexdigest()}" for one in plain]}
    about = blob("config.v1+json", _json({**_PLATFORM, "config": config.document(), "rootfs": rootfs}))
    manifest = {"schemaVersion": 2, "mediaType": f"{_MEDIA}.manifest.v1+json", "config": about, "layers": packed}
    named = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
    entry = {**blob("manifest.v1+json", _json(manifest)), "annotations": named, "platform": _PLATFORM}
    index = {"schemaVersion": 2, "mediaType": f"{_MEDIA}.index.v1+json", "manifests": [entry]}
    with tarfile.open(archive, "w") as tar:
        _put(tar, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
        _put(tar, "index.json", _json(index))
        for digest, content in blobs.items():
            _put(tar, f"blobs/sha256/{digest}", content)


def _tar(layer: Layer) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for above in reversed(layer.place.relative_to(_TOP).parents[:-1]):
            tar.addfile(_folder(str(above)))
        if layer.place != _TOP:
            tar.addfile(_folder(str(layer.place.relative_to(_TOP))))
        for path, name in layer.files():
            _add(tar, path, name)
    return raw.getvalue()


def _folder(name: str) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    entry.uname = entry.gname = "root"
    return entry


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    entry = tar.gettarinfo(path, name)
    entry.mtime = entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    if entry.isdir() or entry.issym():
        tar.addfile(entry)
    elif path.is_file():
        # A second name of one file counts as a file too: which of them came first is no property of the image.
        entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", path.stat().st_size
        with path.open("rb") as content:
            tar.addfile(entry, content)


def _put(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True).encode()
