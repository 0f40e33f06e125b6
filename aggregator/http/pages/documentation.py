"""Documentation page of the HTTP API, rendered from the OpenAPI document, with forms to try requests."""

from __future__ import annotations

import json
import shlex
from typing import Any
from urllib.parse import quote

from aiohttp import web

from aggregator.contract.problems import ERRORS
from aggregator.contract.validation import REASONS
from aggregator.http.app_keys import OPENAPI_DOCUMENT, caller_name
from aggregator.http.pages import PAGES, conditional_response


async def docs(request: web.Request) -> web.StreamResponse:
    """This document as a web page. Kept rendered, since anybody may ask for it."""
    pages, user = request.app[PAGES], caller_name(request)

    async def render() -> bytes:
        return pages.render(
            "docs.html",
            page="docs",
            user=user,
            api=request.app[OPENAPI_DOCUMENT],
            codes=[(code, status, title) for _, status, code, title in ERRORS],
            reasons=REASONS,
            curl=curl_command,
            example_answer=example_answer,
            plain_json=plain_json,
        )

    return conditional_response(request, await pages.cache.get(("docs", user), 0, render), "text/html")


def curl_command(path: str, method: str, operation: dict[str, Any]) -> str:
    """The first example of an operation as a command for a shell in which ``api`` and ``KEY`` are set."""
    required = []
    for parameter in operation.get("parameters", []):
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", quote(parameter["example"], safe=""))
        elif parameter["required"]:
            required.append(f"{parameter['name']}={quote(str(parameter['schema']['examples'][0]))}")
    query = "?" + "&".join(required) if required else ""
    parts = [f'curl -s "$api{path}{query}"']
    if method not in ("get", "post") or (method == "post" and "requestBody" not in operation):
        parts.append(f"-X {method.upper()}")
    if "security" in operation:
        parts.append('-H "authorization: Bearer $KEY"')
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        body = next(iter(content["examples"].values()))["value"]
        text = plain_json(body, None if "ndjson" in media_type else 2)
        option = "--data-binary" if "ndjson" in media_type else "-d"
        parts += [f"-H {shlex.quote('content-type: ' + media_type)}", f"{option} {shlex.quote(text)}"]
    return " \\\n  ".join(parts)


def example_answer(operation: dict[str, Any]) -> tuple[str, object] | None:
    """Status and body of the example of the first JSON answer, None without one."""
    for status, response in operation["responses"].items():
        content = response.get("content", {}).get("application/json", {})
        if "example" in content:
            return status, content["example"]
    return None


def plain_json(value: object, indent: int | None = 2) -> str:
    """JSON for readers: not escaped for markup."""
    return json.dumps(value, ensure_ascii=False, indent=indent)
