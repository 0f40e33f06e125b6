"""Descriptions and examples of OpenAPI schemas, from the tables of ``field_docs``. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

from msgspec import Struct

from aggregator.contract import provenance, requests, responses
from aggregator.contract.field_docs import FIELD_DOCS, REF
from aggregator_client import wire


def describe_schemas(components: dict[str, Any], modules: Iterable[ModuleType] = ()) -> None:
    """Add a description to every property, and an example to those without a reference or choices.

    ``modules``: those that define schemas, in addition to the contract's.
    """
    structs = {
        name: value
        for module in (wire, responses, requests, provenance, *modules)
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Struct)
    }
    for name, schema in components.items():
        for field, part in schema.get("properties", {}).items():
            own, shared = _documentation(structs[name], field)
            text, example = own or shared or ("", REF)
            part["description"] = (own and own[0]) or _description_in(part) or text
            if example is not REF and not _holds_schema(part):
                fitting = _fitting(part, example)
                choices = [value for option in _alternatives(part) for value in option.get("enum", ())]
                if not choices or fitting in choices:
                    part["examples"] = [fitting]


def example_of(components: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An example of a schema, made of the examples of its properties."""
    properties = components[name].get("properties", {})
    return {field: _example(components, part) for field, part in properties.items()}


def _documentation(struct: type[Struct], field: str) -> tuple[tuple[str, Any] | None, tuple[str, Any] | None]:
    """The entries of "Schema.field" (of the nearest base class) and of "field"."""
    bases = [base.__name__ for base in struct.__mro__]
    own = next((FIELD_DOCS[key] for base in bases if (key := f"{base}.{field}") in FIELD_DOCS), None)
    return own, FIELD_DOCS.get(field)


def _description_in(part: Mapping[str, Any]) -> str:
    """The description of a property or of one of its alternatives."""
    found = (part, *part.get("anyOf", ()))
    return next((p["description"] for p in found if p.get("description") and "$ref" not in p), "")


def _alternatives(part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for option in part.get("anyOf", (part,)):
        if option.get("type") != "null":
            yield option


def _holds_schema(part: Mapping[str, Any]) -> bool:
    """Whether every value that is not null is a schema with examples of its own, or a list of such."""
    options = [option.get("items", option) if option.get("type") == "array" else option
               for option in _alternatives(part)]  # fmt: skip
    return bool(options) and all("$ref" in option for option in options)


def _fitting(part: Mapping[str, Any], example: Any) -> Any:
    """The example as text where the schema is that of a form field."""
    option = next(_alternatives(part))
    if option.get("type") != "string" or isinstance(example, str):
        return example
    if isinstance(example, list):
        return ", ".join(example)
    return ("on" if example else "") if isinstance(example, bool) else str(example)


def _example(components: Mapping[str, Any], part: Mapping[str, Any]) -> Any:
    if "examples" in part:
        return part["examples"][0]
    option = next(_alternatives(part))
    if "$ref" in option:
        return example_of(components, option["$ref"].rpartition("/")[2])
    if option.get("type") == "array":
        return [_example(components, option["items"])]
    return option["enum"][0] if "enum" in option else None
