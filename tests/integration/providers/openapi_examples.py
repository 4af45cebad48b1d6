"""The documents of `@readme/oas-examples`, and calls of their operations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.integration import node

from tooli import Tooli
from tooli.core.tool import ListOf
from tooli.describe.sample_values import sample_value
from tooli.inputs.source import SourceShape
from tooli.providers import OpenAPIProvider

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tooli.core.tool import Param, Tool

TEXT = "a b/ü&é"
"""A text with characters that have to be encoded."""
EXAMPLES = "@readme/oas-examples@8.2.2"


def example_folder() -> Path:
    """Return the folder of the documents; install them if they are missing."""
    return node.install(EXAMPLES) / "node_modules" / "@readme" / "oas-examples"


def read_examples(version: str) -> dict[str, dict[str, Any]]:
    """Return the documents of a version, such as "3.0", by name."""
    files = sorted((example_folder() / version / "json").glob("*.json"))
    return {f"{version}/{file.stem}": json.loads(file.read_bytes()) for file in files}


def app_of(document: dict[str, Any], base_url: str, **options: Any) -> Tooli:
    """Return an app with the operations of a document."""
    app = Tooli("app")
    app.add_provider(OpenAPIProvider(document, base_url=base_url, **options))
    return app


def calls_of(app: Tooli, upload: str) -> Iterator[tuple[Tool, dict[str, Any]]]:
    """Yield the operations of an app with sample arguments."""
    for tool in app.catalog:
        arguments = {
            param.name: sample_argument(param, upload)
            for param in tool.public_params
            if param.name != "output_file"
        }
        yield tool, arguments


def sample_argument(param: Param, upload: str) -> Any:
    """Return a sample value of a parameter; `upload` is the path of a file to upload."""
    if isinstance(param.shape, SourceShape):
        return upload
    if isinstance(param.shape, ListOf) and isinstance(param.shape.item, SourceShape):
        return [upload, upload]
    return fill(param.schema or {})


def fill(schema: Any, depth: int = 0) -> Any:
    """Return a value of a schema with all properties."""
    for keyword in ("default", "const"):
        if isinstance(schema.get(keyword), (str, int, float)):
            return schema[keyword]
    if schema.get("enum"):
        return schema["enum"][0]
    if "anyOf" in schema:
        return fill(schema["anyOf"][0], depth)
    if "allOf" in schema:
        parts = [fill(part, depth) for part in schema["allOf"]]
        is_object = all(isinstance(part, dict) for part in parts)
        return {k: v for part in parts for k, v in part.items()} if is_object else parts[0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object" or "properties" in schema:
        return {name: fill(part, depth + 1) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        count = 1 if schema.get("uniqueItems") or depth > 2 else 2
        return [fill(schema.get("items", {}), depth + 1)] * max(count, schema.get("minItems", 0))
    if kind == "string" and schema.get("format") == "date-time":
        return "2026-01-31T12:00:00Z"
    is_plain = kind in (None, "string") and not schema.keys() & {"pattern", "format", "maxLength"}
    return TEXT.ljust(schema.get("minLength", 0), "x") if is_plain else sample_value(schema)
