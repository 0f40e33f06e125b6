"""TypeScript declarations of the API's types, from the OpenAPI document: ``scripts/client-types``.

Only the types that the methods of the JavaScript client name are declared, and those that they refer to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aggregator.http.openapi import build_document
from aggregator.http.routes import ENDPOINTS

DECLARATIONS = Path(__file__).parents[2] / "packages" / "client" / "js" / "aggregator-client.d.mts"
MARKER = "// Generated from the OpenAPI document by scripts/client-types; do not edit below this line.\n"
PREFIX = "#/components/schemas/"
SCALARS = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def generate(text: str) -> str:
    """The file of declarations with its generated part made again; ``text``: the file as it is."""
    schemas = build_document(ENDPOINTS)["components"]["schemas"]
    written = text.partition(MARKER)[0]
    todo = [name for name in schemas if re.search(rf"\b{name}\b", written)]
    names: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in names:
            names.add(name)
            todo += re.findall(rf'"{PREFIX}(\w+)"', json.dumps(schemas[name]))
    return written + MARKER + "".join("\n" + _declaration(name, schemas[name]) for name in sorted(names))


def _declaration(name: str, schema: Mapping[str, Any]) -> str:
    if "properties" not in schema:
        return f"{_comment(schema, '')}export type {name} = {_type(schema)};\n"
    required = set(schema.get("required", ()))
    members = "".join(
        f"{_comment(member, '  ')}  {field}{'' if field in required else '?'}: {_type(member)};\n"
        for field, member in schema["properties"].items()
    )
    return f"{_comment(schema, '')}export interface {name} {{\n{members}}}\n"


def _comment(schema: Mapping[str, Any], indent: str) -> str:
    """The first paragraph of the description, in one line."""
    paragraph = str(schema.get("description", "")).split("\n\n")[0]
    text = " ".join(paragraph.split()).replace("``", "`").replace("*/", "* /")
    return f"{indent}/** {text} */\n" if text else ""


def _type(schema: Mapping[str, Any]) -> str:
    """The TypeScript expression of a schema. Raises KeyError for an unknown type."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(PREFIX)
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_type(option) for option in schema["anyOf"])
    if schema.get("type") == "array":
        return f"Array<{_type(schema['items'])}>" if "items" in schema else "unknown[]"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"Record<string, {_type(values) if isinstance(values, Mapping) else 'unknown'}>"
    return SCALARS[schema["type"]] if schema.get("type") else "unknown"


if __name__ == "__main__":
    DECLARATIONS.write_text(generate(DECLARATIONS.read_text(encoding="utf-8")), encoding="utf-8")
