"""`hansa hub backup`, `follow` and `restore`: the whole hub as one file, and back."""

import contextlib
import os
import time
from pathlib import Path
from typing import Annotated

import typer

from hansa.client import HubClient, errors
from hansa.entrypoints.cli import hub_session, options, usage
from hansa.entrypoints.cli.commands.server import Config, load_settings
from hansa.entrypoints.cli.screen import Screen
from hansa.kernel.errors import Invalid
from hansa.messages.backups import NewBackup

_WITHIN = 300.0
_VARIABLE = "HANSA_HUB_PASSPHRASE"
_NAME = "hub-%Y%m%d-%H%M%S.backup"
Passphrase = Annotated[
    str | None,
    typer.Option(
        "--passphrase-file", metavar="FILE", help=f"A file with the passphrase; else {_VARIABLE}, else it is asked for."
    ),
]


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to; an existing file is replaced.")],
    passphrase_file: Passphrase = None,
    hub: options.Hub = None,
    as_json: options.Json = False,
) -> None:
    """Save the whole hub into one file; its secrets are locked with a passphrase."""
    screen = Screen(as_json=as_json)
    words = _passphrase(passphrase_file, twice=True)
    with hub_session.opened(hub) as opened:
        size = _save(opened, file, words)
    screen.data({"file": str(file), "bytes": size})
    screen.note(f"{file}: {size} bytes; keep the passphrase elsewhere, nothing opens the file without it")


def follow(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the files are kept.")],
    every: Annotated[float, typer.Option("--every", min=1, metavar="SECONDS", help="Seconds between two files.")] = 30,
    keep: Annotated[int, typer.Option("--keep", min=1, metavar="N", help="How many files stay.")] = 10,
    times: Annotated[int, typer.Option("--times", min=0, metavar="N", help="End after so many; 0 is never.")] = 0,
    passphrase_file: Passphrase = None,
    hub: options.Hub = None,
) -> None:
    """Keep a folder of fresh backups for a standby; on the day of need: `hansa hub restore FOLDER`."""
    screen = Screen(as_json=False)
    words = _passphrase(passphrase_file, twice=False)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    done = 0
    with hub_session.opened(hub) as opened:
        while True:
            began = time.monotonic()
            file = folder / time.strftime(_NAME, time.gmtime())
            try:
                size = _save(opened, file, words)
            except (errors.Unreachable, errors.TooSlow) as error:
                screen.note(f"no backup this time: {error}")  # it is away: this is what the files are for
            else:
                screen.note(f"{file.name}: {size} bytes in {time.monotonic() - began:.1f} s")
                for old in sorted(folder.glob("hub-*.backup"))[:-keep]:
                    old.unlink()
                done += 1
            if times and done >= times:
                return
            time.sleep(max(0.0, every - (time.monotonic() - began)))


def restore(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A backup, or a folder of `hansa hub follow`.")],
    passphrase_file: Passphrase = None,
    config: Config = None,
    as_json: options.Json = False,
) -> None:
    """Bring a saved hub back into this machine's (empty) data folder and database; then start it."""
    from hansa import bootstrap  # noqa: PLC0415 - the server's libraries are slow to load

    screen = Screen(as_json=as_json)
    file = max(source.glob("hub-*.backup"), default=None) if source.is_dir() else source
    if file is None:
        raise Invalid(f"there is no backup in {source}", hint="give the file itself")
    words = _passphrase(passphrase_file, twice=False)
    began = time.monotonic()
    try:
        with file.open("rb") as content:
            rows = bootstrap.restore_hub(load_settings(config), content, words)
    except FileNotFoundError:
        raise Invalid(f"there is no file {file}") from None
    screen.data({"file": str(file), "rows": rows})
    screen.note(f"{file.name}: {rows} rows in {time.monotonic() - began:.1f} s; start the hub: hansa server")


def _save(opened: HubClient, file: Path, words: str) -> int:
    """Written aside and moved into place: a file with this name is always whole."""
    content = opened.within(_WITHIN).backup(NewBackup(passphrase=words))
    aside = file.with_name(f".{file.name}.part")
    with contextlib.suppress(FileNotFoundError):
        aside.unlink()
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    aside.replace(file)
    return len(content)


def _passphrase(file: str | None, *, twice: bool) -> str:
    if file is not None:
        try:
            return Path(file).read_text().strip()
        except OSError as error:
            raise Invalid(f"the passphrase file {file} cannot be read: {error.strerror}") from None
    if given := os.environ.get(_VARIABLE):
        return given
    usage.require_terminal("passphrase", f"--passphrase-file, or set {_VARIABLE}")
    return str(typer.prompt("passphrase", hide_input=True, confirmation_prompt=twice, err=True))


def register(app: typer.Typer) -> None:
    app.command()(backup)
    app.command()(follow)
    app.command()(restore)
