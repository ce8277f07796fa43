"""A script that asks for another interpreter than a shell is told that it will not get it."""

import pytest

from hansa.services import interpreter


@pytest.mark.parametrize(
    "first",
    ["echo hello", "# a comment", "#!/bin/sh", "#! /bin/bash -e", "#!/usr/bin/env bash", "#!/usr/bin/env -S A=1 sh -e"],
)
def test_shells(first: str) -> None:
    assert interpreter.warnings(f"{first}\necho hello\n") == ()


@pytest.mark.parametrize("first", ["#!/usr/bin/env python3", "#!/usr/bin/perl -w", "#!/usr/bin/env", "#!"])
def test_others_are_told(first: str) -> None:
    [told] = interpreter.warnings(f"{first}\nprint('hello')\n")
    assert told.startswith(f"the script begins with '{first}', but scripts are run by /bin/sh.")


def test_a_warning_fits_into_a_header() -> None:
    [told] = interpreter.warnings("#!/opt/ü\r" + "x" * 10_000 + "\n")
    assert told.isascii()
    assert told.isprintable()
    assert len(told) < 400
