"""Is the image that `deploy/Containerfile` makes the one that tests run in a real cluster?"""

import json
import shlex
from pathlib import Path

from hansa.kernel.kubernetes import KubernetesSettings
from real.kubernetes import hansa_image

FILE = Path(__file__).parents[2] / "deploy" / "Containerfile"


def instructions() -> list[tuple[str, str]]:
    """Of the last stage, which is the image; longer ones as one line."""
    lines = [line for line in FILE.read_text().splitlines() if line and not line.startswith("#")]
    words = [line.split(maxsplit=1) for line in "\n".join(lines).replace("\\\n", " ").splitlines()]
    pairs = [(word.upper(), " ".join(rest.split())) for word, rest in words]
    last = max(number for number, (word, _) in enumerate(pairs) if word == "FROM")
    return pairs[last:]


def only(word: str) -> str:
    (found,) = [rest for name, rest in instructions() if name == word]
    return found


def test_it_says_the_same_of_itself() -> None:
    told = hansa_image.CONFIG
    assert tuple(json.loads(only("ENTRYPOINT"))) == told.entrypoint
    assert tuple(json.loads(only("CMD"))) == told.command
    assert (only("USER"), only("WORKDIR")) == (told.user, told.folder)
    assert dict(pair.split("=", 1) for pair in shlex.split(only("ENV"))) == told.environment


def test_its_parts_are_in_the_same_places() -> None:
    copied = {rest.split()[-1] for name, rest in instructions() if name == "COPY"}
    assert copied == {str(hansa_image.DEPENDENCIES), str(hansa_image.PROGRAM)}


def test_it_is_of_the_user_that_pods_are() -> None:
    assert only("USER") == ":".join([str(KubernetesSettings().user)] * 2)


def test_everything_in_it_is_pinned() -> None:
    text = FILE.read_text()
    assert "--require-hashes" in text
    assert "requirements/run.txt" in text
    bases = [rest for name, rest in instructions() if name == "FROM"]
    assert bases == ["${BASE}"]
    assert "ARG BASE=python:" in text
