"""What does a file, or `--set jobs.run_limit=120`, say? A tree of values, from TOML, YAML or JSON."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import typer
import yaml

from hansa.kernel import bounded_yaml, errors


def read(file: Path) -> dict[str, Any]:
    """The tree in a file; `-` is stdin. TOML by its name, YAML and JSON otherwise."""
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        tree = tomllib.loads(text) if file.suffix == ".toml" else bounded_yaml.load(text)
    except (OSError, ValueError, yaml.YAMLError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise errors.Invalid(f"cannot read {file}: {said}") from None
    if not isinstance(tree, dict):
        raise errors.Invalid(f"{file} holds no names and values", hint="write it as in docs/guides/hub.md")
    return tree


def with_settings(tree: dict[str, Any], given: list[str]) -> dict[str, Any]:
    """The tree with `name.of.setting=value` on top; values are JSON where they can be, else text."""
    for text in given:
        name, sign, value = text.partition("=")
        *groups, leaf = name.split(".")
        if not (sign and groups and leaf):
            raise typer.BadParameter(f"{text!r} is no setting; write it as jobs.run_limit=120", param_hint="--set")
        place = tree
        for group in groups:
            inner = place.setdefault(group, {})
            if not isinstance(inner, dict):
                raise typer.BadParameter(f"{text!r}: {group} is a value already", param_hint="--set")
            place = inner
        place[leaf] = _value(value)
    return tree


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def leaves(tree: dict[str, Any], above: str = "") -> list[tuple[str, Any]]:
    """Every value with its whole name, in order."""
    found: list[tuple[str, Any]] = []
    for key, value in sorted(tree.items()):
        if isinstance(value, dict) and value:
            found += leaves(value, f"{above}{key}.")
        else:
            found.append((f"{above}{key}", value))
    return found


def shown(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # a hub writes 120.0 for what a person calls 120
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
