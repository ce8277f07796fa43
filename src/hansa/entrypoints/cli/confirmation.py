"""May we really delete this? Asks a person; a script has to say `--yes`."""

import typer

from hansa.entrypoints.cli import usage


def require(question: str, *, yes: bool) -> None:
    if yes:
        return
    usage.require_terminal(question, "--yes")
    if not typer.confirm(question, err=True):
        raise typer.Abort
