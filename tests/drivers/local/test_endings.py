"""Is every end told in words that help?"""

from pathlib import Path

import pytest

from hansa.drivers.local import endings
from hansa.drivers.local.launch import Exit, Launch

LAUNCH = Launch("job", ("sh",), {}, Path("/w"), cpu=100, memory=256 * 2**20, seconds=60)


@pytest.mark.parametrize(
    ("exit", "words"),
    [
        (Exit(0, "exit", 1, 1), ""),
        (Exit(7, "exit", 1, 1), "exit code 7"),
        (Exit(127, "exit", 1, 1), "exit code 127 (a command was not found)"),
        (Exit(139, "exit", 1, 1), "exit code 139 (signal 11)"),
        (Exit(137, "exit", 1, 1), "exit code 137 (signal 9, as when memory runs out)"),
        (Exit(0, "oom", 1, 1), "out of memory: used more than 256Mi"),
        (Exit(None, "timeout", 60, 1), "time limit of 60 s reached"),
        (Exit(None, "killed", 1, 1), "it was stopped"),
        (Exit(None, "lost", 1, None), "the sandbox it ran in died"),
    ],
)
def test_words(exit: Exit, words: str) -> None:
    assert endings.in_words(exit, LAUNCH) == words
    assert endings.succeeded(exit) is (words == "")
