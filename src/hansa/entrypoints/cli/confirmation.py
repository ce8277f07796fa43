"""May we really delete this? Asks a person; a script has to say `--yes`."""

import sys

import typer


def require(question: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"nobody can be asked: {question}; give --yes to go ahead", param_hint="--yes")
    if not typer.confirm(question, err=True):
        raise typer.Abort
