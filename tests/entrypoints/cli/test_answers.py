"""Results of synchronous runs come out as the files or text they were."""

import base64
import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.entrypoints.cli import answers, inputs
from hansa.kernel import errors


def zipped(**files: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return base64.b64encode(held.getvalue())


@pytest.mark.parametrize(
    "text", [b"done", b"true", b"hello world\n", b"", b"4 words 1", b"12345678", b"ab" * 32 + b"\n"]
)
def test_plain_text_stays(text: bytes) -> None:
    assert answers.decode(text).content == text


@pytest.mark.parametrize("content", [b"HELLO WORLD\n", b"\x89PNG\r\n\x1a\n" + bytes(40), b"a\n"])
def test_one_file(content: bytes) -> None:
    assert answers.decode(base64.b64encode(content)).content == content
    assert answers.decode(base64.b64encode(content), raw=True).content == base64.b64encode(content)


def test_several_files_go_into_a_folder(tmp_path: Path) -> None:
    answer = answers.decode(zipped(**{"a.txt": b"A", "sub/b.txt": b"B"}))
    assert answer.names() == ["a.txt", "sub/b.txt"]
    written = answers.save(answer, tmp_path / "out")
    assert [path.read_bytes() for path in written] == [b"A", b"B"]
    assert (tmp_path / "out" / "sub" / "b.txt").exists()


def test_several_files_may_be_kept_as_a_zip(tmp_path: Path) -> None:
    (path,) = answers.save(answers.decode(zipped(a=b"A")), tmp_path / "all.zip")
    assert zipfile.is_zipfile(path)


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil", "..\\evil"])
def test_no_file_lands_outside(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    with pytest.raises(errors.Invalid, match="outside"):
        answers.save(answers.decode(zipped(**{name: b"x"})), folder)
    assert list(folder.iterdir()) == []


def test_one_file_into_a_folder_or_a_file(tmp_path: Path) -> None:
    answer = answers.decode(base64.b64encode(b"HELLO WORLD\n"))
    assert answers.save(answer, tmp_path, name="x-output") == [tmp_path / "x-output"]
    assert answers.save(answer, tmp_path / "f.txt") == [tmp_path / "f.txt"]
    with pytest.raises(errors.Invalid, match="cannot write"):
        answers.save(answer, tmp_path / "no" / "f.txt")


@given(st.binary(max_size=4000), st.booleans())
def test_inputs_travel_whole_and_say_their_length(content: bytes, encode: bool) -> None:
    given_input = inputs.held(content, encode=encode)
    length = given_input.length
    sent = b"".join(given_input.pieces())
    assert len(sent) == length
    assert (base64.b64decode(sent) if encode else sent) == content


def test_large_inputs_are_coded_in_pieces(tmp_path: Path) -> None:
    content = bytes(range(256)) * 8192
    (tmp_path / "big").write_bytes(content)
    given_input = inputs.of(str(tmp_path / "big"), None)
    pieces = list(given_input.pieces())
    assert len(pieces) > 1
    assert base64.b64decode(b"".join(pieces)) == content
    with pytest.raises(errors.Invalid, match="cannot read"):
        inputs.of(str(tmp_path / "none"), None)
