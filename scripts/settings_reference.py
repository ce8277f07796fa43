"""Writes `docs/reference/settings.md` from the settings themselves; `--check` only says whether it is up to date.

Run it after changing a setting; a test fails when the page is stale, or when a setting has no sentence.
"""

import ast
import inspect
import sys
import textwrap
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from hansa.federation import live
from hansa.settings import Settings

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "settings.md"
_WORDS = {str: "text", int: "number", float: "number", bool: "true or false", Path: "folder", SecretStr: "secret text"}


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    kind: str
    default: str
    sentence: str


def settings() -> list[Setting]:
    """Every setting, in the order of the tree."""
    return list(_walk(Settings, ""))


def _walk(model: type[BaseModel], prefix: str) -> Iterator[Setting]:
    sentences = _sentences(model)
    for key, field in model.model_fields.items():
        inner = _model_in(field.annotation)
        if inner is None or inner is not field.annotation:
            yield Setting(prefix + key, _kind(field), _default(field), sentences.get(key, ""))
        if inner is not None:
            yield from _walk(inner, f"{prefix}{key}{_step(field.annotation)}.")


def _sentences(model: type[BaseModel]) -> dict[str, str]:
    """The text that stands below each field, which Python itself throws away."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(model)))
    (definition,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    found = {}
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match below:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    found[field.target.id] = " ".join(text.split())
    return found


def _model_in(annotation: Any) -> type[BaseModel] | None:
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def _step(annotation: Any) -> str:
    """How the name goes on inside a list or a table of tables."""
    origin = get_origin(annotation)
    return "[]" if origin is tuple else ".NAME" if origin is dict else ""


def _kind(field: FieldInfo) -> str:
    bounds = [f"{mark} {limit}" for mark, limit in _limits(field)]
    return ", ".join([_type(field.annotation), *bounds])


def _type(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is Literal:
        return " or ".join(f"`{choice}`" for choice in get_args(annotation))
    if origin is tuple:
        return "list of tables" if _model_in(annotation) else f"list of {_type(get_args(annotation)[0])}"
    if origin is dict:
        return "table of tables" if _model_in(annotation) else "table"
    if origin in (types.UnionType, typing.Union):
        return " or ".join(_type(one) for one in get_args(annotation) if one is not type(None))
    return _WORDS[annotation]


def _limits(field: FieldInfo) -> Iterator[tuple[str, int | float]]:
    for bound in field.metadata:
        for name, mark in (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<")):
            if hasattr(bound, name):
                yield mark, getattr(bound, name)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if value is None or value in ("", (), {}):
        return "—"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def render() -> str:
    """The whole page."""
    lines = [
        "# Settings",
        "",
        "<!-- Made by scripts/settings_reference.py from src/hansa/settings.py; change that, not this page. -->",
        "",
        "A manager reads a TOML file (`hansa server --config FILE`; else `HANSA_CONFIG`, else `hansa.toml` in the",
        "current folder) and then `HANSA_*` variables, which win. The dots of a name become tables in the file and",
        "`__` in a variable: `http.port` is `port` under `[http]`, or `HANSA_HTTP__PORT`. In variables, lists and",
        "tables are JSON. A wrong or unknown setting stops the start with one line that says so. Nothing is read again",
        "later. Those marked live can be [told by a hub](../guides/configuration.md) and then change while it runs.",
    ]
    groups: dict[str, list[Setting]] = {}
    for setting in settings():
        groups.setdefault(setting.name.rpartition(".")[0], []).append(setting)
    for heading, members in groups.items():
        lines += ["", f"## {heading or 'At the top'}", ""]
        lines += ["| setting | kind | default | what it decides |", "|---|---|---|---|"]
        for one in members:
            kind = f"{one.kind}; live" if one.name in live.NAMES else one.kind
            cells = (f"`{one.name}`", kind, one.default, one.sentence)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    page = render()
    if "--check" not in sys.argv:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        print("docs/reference/settings.md is stale; run: python scripts/settings_reference.py", file=sys.stderr)
        return 1
    silent = [setting.name for setting in settings() if not setting.sentence]
    if silent:
        print(f"settings without a sentence below them: {', '.join(silent)}", file=sys.stderr)
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
