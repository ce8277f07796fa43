"""Writes `docs/reference/cli.md` from the commands themselves; `--check` only says whether it is up to date.

Run it after changing a command, an option or a help text; a test fails when the page is stale.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from hansa.entrypoints.cli import exits
from hansa.entrypoints.cli.app import app

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"
_COMPLETION = ("install_completion", "show_completion", "help")


def render() -> str:
    """The whole page."""
    lines = [
        "# The command line",
        "",
        "<!-- Made by scripts/cli_reference.py from the commands; change them, not this page. -->",
        "",
        *_introduction(),
    ]
    for path, command, context in _commands(get_command(app), None, "hansa"):
        lines += _command(path, command, context)
    return "\n".join(lines).rstrip() + "\n"


def _introduction() -> list[str]:
    return [
        "`hansa` runs a manager or a hub (`hansa server`) and talks to them: to Hansa's managers and OSCAR's, and to a",
        "federation's hub.",
        "",
        "**Which cluster.** `--cluster NAME` wins, then `HANSA_URL`, then `HANSA_CLUSTER`, then the profile in use",
        "(`hansa profile use`). `HANSA_TOKEN`, or `HANSA_USER` with `HANSA_PASSWORD`, sign in to `HANSA_URL`; without",
        "`HANSA_URL` they replace the credentials of the chosen profile. Profiles are kept in",
        "`$XDG_CONFIG_HOME/hansa/clusters.toml` (`HANSA_PROFILES` names another file), readable by you only. Where",
        "`make run` runs in the current folder, its clusters are known besides, come first where a name is the same,",
        "and one of them is in use until you choose another; that choice ends with it, and what you sign in to stays.",
        "",
        "**Which hub.** Commands that ask a hub (`cluster`, `config` with a command, `policy`, `top`, `hub`,",
        "`federation-status`) speak to `--hub NAME` or `--hub URL`, then to `HANSA_HUB`, then to the hub in use",
        "(`hansa login URL --hub`, `hansa profile use`). `HANSA_HUB_TOKEN`, or `HANSA_HUB_USER` with",
        "`HANSA_HUB_PASSWORD`, sign in to `HANSA_HUB`; without it they replace the credentials of the chosen hub.",
        "",
        "**Output.** Answers go to stdout; notes, warnings, bars and errors to stderr, an error's hint last. With",
        "`--json` stdout holds one JSON document and nothing else. There is no colour when stdout is no terminal or",
        "`NO_COLOR` is set. Tokens, keys and passwords are masked unless `--secrets` is given.",
        "",
        "**Completion.** `hansa --install-completion` teaches your shell the commands and the names of your clusters.",
        "",
        "## Exit codes",
        "",
        "| code | meaning |",
        "|---|---|",
        *(f"| {code.value} | {meaning} |" for code, meaning in exits.MEANING.items()),
        "",
    ]


def _commands(command: Any, parent: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Every command that does something, with its full name, in the order of the help."""
    context = command.context_class(command, parent=parent, info_name=path.rpartition(" ")[2])
    inner = getattr(command, "commands", None)
    if inner is None or command.invoke_without_command:
        yield path, command, context
    for name, child in (inner or {}).items():
        yield from _commands(child, context, f"{path} {name}")


def _command(path: str, command: Any, context: Any) -> list[str]:
    pieces = " ".join(command.collect_usage_pieces(context)).replace("{", "").replace("}", "")
    lines = [f"## {path}", "", command.help or "", "", "```", f"{path} {pieces}", "```", ""]
    params = [param for param in command.params if param.name not in _COMPLETION]
    rows = [_row(param, context) for param in params]
    if rows:
        lines += ["| argument or option | meaning |", "|---|---|", *rows, ""]
    return lines


def _row(param: Any, context: Any) -> str:
    record = param.get_help_record(context)
    names, meaning = record if record else (param.name, "")
    escaped = " ".join(meaning.split()).replace("|", "\\|")
    return f"| `{names.replace('|', '/')}` | {escaped} |"


def main() -> int:
    page = render()
    if "--check" in sys.argv[1:]:
        current = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        if current != page:
            print(f"{PAGE.name} is stale; run: python scripts/cli_reference.py", file=sys.stderr)
            return 1
        return 0
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
