"""`/docs`: the API's document as a page to read. Made here, without scripts and without a file from anywhere else."""

import base64
import hashlib
import json
from html import escape
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#1c2733;background:#fff}
h2{margin:2rem 0 .5rem;border-bottom:1px solid #ccd}
details{margin:.3rem 0;border:1px solid #dde;border-radius:4px;padding:.3rem .6rem}
summary{cursor:pointer}
summary b{display:inline-block;min-width:4.5rem}
pre{background:#f4f6f8;padding:.6rem;overflow:auto;max-height:24rem}
table{border-collapse:collapse}td,th{text-align:left;padding:.1rem .8rem .1rem 0;vertical-align:top}
@media(prefers-color-scheme:dark){body{background:#14181d;color:#dde3ea}pre{background:#1f262e}a{color:#8cf}}
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
}


def add_to(api: FastAPI) -> None:
    """Serves it, made at the first visit."""
    made: list[str] = []

    async def page(_: Request) -> HTMLResponse:
        if not made:
            made.append(render(api.openapi()))
        return HTMLResponse(made[0], headers=_HEADERS)

    api.add_route("/docs", page, include_in_schema=False)


def render(document: dict[str, Any]) -> str:
    about = document["info"]
    by_tag: dict[str, list[str]] = {}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            by_tag.setdefault((operation.get("tags") or ["other"])[0], []).append(_operation(method, path, operation))
    sections = "".join(f"<h2>{escape(tag)}</h2>{''.join(operations)}" for tag, operations in sorted(by_tag.items()))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(about["title"])}</title>'
        f"<style>{_STYLE}</style><h1>{escape(about['title'])} {escape(about['version'])}</h1>"
        f"{_paragraphs(about.get('description', ''))}"
        f'<p>For programs: <a href="/openapi.json">/openapi.json</a></p>{sections}</html>'
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    parts = [
        f"<details><summary><b>{escape(method.upper())}</b> <code>{escape(path)}</code> "
        f"{escape(operation.get('summary', ''))}</summary>",
        _paragraphs(operation.get("description", "")),
        _callers(operation.get("security", [])),
        _parameters(operation.get("parameters", [])),
    ]
    body = operation.get("requestBody", {})
    for kind, content in body.get("content", {}).items():
        parts.append(f"<p>Body, <code>{escape(kind)}</code>: {escape(body.get('description', ''))}</p>")
        parts.append(_json(content["example"] if "example" in content else content.get("schema")))
    for status, answer in operation.get("responses", {}).items():
        parts.append(f"<p>{escape(str(status))}: {escape(answer.get('description', ''))}</p>")
        if str(status).startswith("2"):
            parts += [_json(content.get("schema")) for content in answer.get("content", {}).values()]
    return "".join([*parts, "</details>"])


def _callers(security: list[dict[str, Any]]) -> str:
    who = [", ".join(one) or "anybody" for one in security] or ["anybody"]
    return f"<p>Callable by: {escape('; '.join(who))}</p>"


def _parameters(parameters: list[dict[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(one['name'])}</code></td><td>{escape(one['in'])}</td>"
        f"<td>{'required' if one.get('required') else ''}</td><td>{escape(one.get('description', ''))}</td></tr>"
        for one in parameters
    )
    return f"<table>{rows}</table>" if rows else ""


def _json(value: Any) -> str:
    return f"<pre>{escape(json.dumps(value, indent=1))}</pre>" if value else ""


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{escape(part)}</p>" for part in text.split("\n\n") if part.strip())
