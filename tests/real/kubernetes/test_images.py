"""Is an image the same archive whenever it is made of the same files, and another one when they change?"""

import io
import json
import os
import tarfile
from pathlib import Path, PurePosixPath

from real.kubernetes import oci


def _files(folder: Path, word: str = "salt") -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "cargo").write_text(word)
    (folder / "bin" / "cargo").chmod(0o755)
    (folder / "bin" / "freight").symlink_to("cargo")
    os.link(folder / "bin" / "cargo", folder / "twin")
    return folder


def _archive(place: Path, *layers: oci.Layer) -> bytes:
    oci.write(place, "localhost/cargo:1", layers, oci.Config(command=("/bin/cargo",), user="65534:65534"))
    return place.read_bytes()


def test_the_same_files_are_the_same_archive(tmp_path: Path) -> None:
    one, other = oci.Layer(_files(tmp_path / "one")), oci.Layer(_files(tmp_path / "other"))
    os.utime(other.folder / "twin", (1, 1))
    assert one.fingerprint() == other.fingerprint()
    assert _archive(tmp_path / "1.tar", one) == _archive(tmp_path / "2.tar", other)


def test_another_word_or_place_is_another_image(tmp_path: Path) -> None:
    one, other = oci.Layer(_files(tmp_path / "one")), oci.Layer(_files(tmp_path / "other", "herring"))
    elsewhere = oci.Layer(one.folder, PurePosixPath("/opt/ship"))
    assert len({one.fingerprint(), other.fingerprint(), elsewhere.fingerprint()}) == 3


def test_a_layer_stands_where_it_was_put_and_belongs_to_root(tmp_path: Path) -> None:
    below, above = oci.Layer(_files(tmp_path / "below")), oci.Layer(tmp_path / "below", PurePosixPath("/opt/ship"))
    _archive(tmp_path / "image.tar", below, above)
    with tarfile.open(tmp_path / "image.tar") as archive:

        def blob(name: str) -> bytes:
            file = archive.extractfile(name)
            assert file is not None
            return file.read()

        (entry,) = json.loads(blob("index.json"))["manifests"]
        manifest = json.loads(blob(f"blobs/sha256/{entry['digest'].removeprefix('sha256:')}"))
        assert entry["annotations"]["io.containerd.image.name"] == "localhost/cargo:1"
        raw = blob(f"blobs/sha256/{manifest['layers'][1]['digest'].removeprefix('sha256:')}")
    with tarfile.open(fileobj=io.BytesIO(raw)) as layer:
        members = layer.getmembers()
    names = ["opt", "opt/ship", "opt/ship/bin", "opt/ship/bin/cargo", "opt/ship/bin/freight", "opt/ship/twin"]
    assert [member.name for member in members] == names
    assert {(member.uid, member.gid, member.mtime) for member in members} == {(0, 0, 0)}
    assert [member.isreg() for member in members if member.name.endswith(("cargo", "twin"))] == [True, True]
