"""Exposed services for stories: alice's small program, ready to be visited."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from journeys.waiting import eventually

PROGRAM = (Path(__file__).parent / "exposed_program.py").read_text()
Expose = Callable[..., str]


def script(port: int) -> str:
    return f"cat >/tmp/program.py <<'END'\n{PROGRAM}\nEND\nexec /usr/bin/python3 -u /tmp/program.py {port}\n"


def definition(port: int = 8080, **fields: Any) -> dict[str, Any]:
    """Everybody may visit it unless the fields say otherwise."""
    expose = {"api_port": [port], "min_scale": 1, "max_scale": 1, "health_path": "/health", **fields.pop("expose", {})}
    return {"expose": expose, "cpu": "0.5", "memory": "128Mi", "visibility": "public", **fields}


def ready(client: httpx.Client, name: str) -> dict[str, Any]:
    def look() -> dict[str, Any]:
        shown: dict[str, Any] = client.get(f"/system/services/{name}/deployment").json()
        return shown if shown["state"] == "ready" else {}

    return eventually(look, what=f"{name} ready")


def at(name: str, path: str = "") -> str:
    return f"/system/services/{name}/exposed{path}"
