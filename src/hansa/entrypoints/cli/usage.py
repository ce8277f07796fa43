"""What is wrong with how a command was written, where that is not the value of one option."""

import sys

import typer


class Misused(typer.BadParameter):
    """Told as it is; Typer's own would begin with "Invalid value"."""

    def format_message(self) -> str:
        return self.message


def require_terminal(what: str, instead: str) -> None:
    """Raises where nobody sits who could answer; `instead` is what a script can give."""
    if not sys.stdin.isatty():
        raise Misused(f"{what}: not on a terminal, so nobody can be asked; give {instead}")
