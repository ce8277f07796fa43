"""All commands together, and the one place where a failure becomes words on stderr and an exit code."""

import os
import sys
from typing import Annotated

import typer
from typer.main import get_command

from hansa.entrypoints.cli import exits
from hansa.entrypoints.cli.commands import (
    apply,
    bucket,
    cluster,
    config,
    federation,
    federation_status,
    hub,
    job,
    login,
    policy,
    profile,
    quota,
    server,
    service,
    status,
    top,
    volume,
)
from hansa.entrypoints.cli.commands import run as run_command
from hansa.entrypoints.cli.screen import Screen
from hansa.kernel.errors import HansaError

_EPILOG = "Exit codes: " + "; ".join(f"{code.value} {meaning}" for code, meaning in exits.MEANING.items()) + "."

app = typer.Typer(
    name="hansa",
    help="Hansa: independent clusters that act as one.",
    epilog=_EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        status.version()
        raise typer.Exit()


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", help="The same as `hansa version`.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """What can be said before any command."""


for _module in (server, login, apply, run_command, status, federation_status, top):
    _module.register(app)
for _name, _group in (
    ("profile", profile.app),
    ("service", service.app),
    ("job", job.app),
    ("bucket", bucket.app),
    ("volume", volume.app),
    ("quota", quota.app),
    ("federation", federation.app),
    ("cluster", cluster.app),
    ("config", config.app),
    ("policy", policy.app),
    ("hub", hub.app),
):
    app.add_typer(_group, name=_name)


def run(arguments: list[str]) -> int:
    """Runs one command line; gives its exit code."""
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        return _pipe_closed()
    except SystemExit as stop:
        # Typer leaves this way when stdout's reader is gone, and when it has answered a shell's completion.
        return _pipe_closed() if isinstance(stop.__context__, BrokenPipeError) else int(stop.code or 0)
    return code


def _run(arguments: list[str]) -> int:
    try:
        code = get_command(app).main(arguments, prog_name="hansa", standalone_mode=False)
    except HansaError as error:
        Screen().failure(error)
        return exits.of(error)
    except typer.TyperException as error:
        message = error.format_message()
        if message.startswith("Usage:"):  # a group without a command: its help is the best answer
            Screen().aside(message)
        else:
            Screen().error(message, hint=_usage_hint(error))
        return error.exit_code
    except typer.Abort:
        Screen().error("stopped; nothing was changed")
        return exits.Exit.FAILED
    return code if isinstance(code, int) else exits.Exit.OK


def _usage_hint(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "hansa"
    return f"see: {path} --help"


def _pipe_closed() -> int:
    """Whoever read our output, such as `head`, has seen enough."""
    # Python flushes stdout once more at its end; let that go nowhere.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return exits.Exit.OK
