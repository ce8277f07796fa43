"""Which parts of an answer are secret? `hide` masks them wherever they stand. Pure."""

from typing import Any

MASK = "********"
_SECRET = frozenset(
    {"token", "password", "auth_password", "secret_key", "access_key", "refresh_token", "authorization"}
)


def hide(value: Any) -> Any:
    """The same document with secret texts masked; empty ones and OSCAR's own "hidden" stay as they are."""
    if isinstance(value, dict):
        return {key: _hide_entry(key, item) for key, item in value.items()}
    if isinstance(value, list):
        return [hide(item) for item in value]
    return value


def _hide_entry(key: str, item: Any) -> Any:
    if key == "secrets" and isinstance(item, dict):
        return {name: masked(text) for name, text in item.items()}
    if key.lower() in _SECRET and isinstance(item, str):
        return masked(item)
    return hide(item)


def masked(text: Any) -> Any:
    return MASK if text and text != "hidden" else text
