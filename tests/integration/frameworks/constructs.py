"""Constructs of JSON Schema that some hosts and frameworks refuse, and an MCP server with them.

`python constructs.py [NAME]` serves one tool per construct (or only the named one) on stdin and
stdout, with the schema exactly as it is here. It needs no packages. A tool returns its arguments.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

MEASURED_CONSTRUCTS = Path(__file__).with_name("constructs.json")
"""What test_constructs.py measured: for each client, the constructs that it does not keep."""

TREE = {
    "type": "object",
    "properties": {
        "label": {"type": "string"},
        "below": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
    },
    "required": ["label"],
}
POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
PETS = [
    {
        "type": "object",
        "properties": {"kind": {"type": "string", "const": kind}},
        "required": ["kind"],
    }
    for kind in ("cat", "dog")
]

# The title for the documents, the schema of the parameter, an argument, and definitions.
CONSTRUCTS: dict[str, tuple[str, dict[str, Any], Any, dict[str, Any]]] = {
    "reference": ("`$ref`", {"$ref": "#/$defs/Point"}, {"x": 1}, {"Point": POINT}),
    "recursion": ("recursive `$ref`", {"$ref": "#/$defs/Tree"}, {"label": "a"}, {"Tree": TREE}),
    "discriminator": (
        "`discriminator`",
        {"oneOf": PETS, "discriminator": {"propertyName": "kind"}},
        {"kind": "cat"},
        {},
    ),
    "one_of": ("`oneOf`", {"oneOf": PETS}, {"kind": "cat"}, {}),
    "any_of_null": (
        "`anyOf` with null",
        {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        None,
        {},
    ),
    "constant": ("`const`", {"type": "string", "const": "a"}, "a", {}),
    "tuple": (
        "`prefixItems`",
        {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "minItems": 2,
            "maxItems": 2,
        },
        [1, "a"],
        {},
    ),
    "open_object": (
        "`additionalProperties` as a schema",
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"a": 1},
        {},
    ),
    "no_type": ("a schema without `type`", {"description": "Any value."}, [1], {}),
    "binary": ("`format: binary`", {"type": "string", "format": "binary"}, "a", {}),
    "password": ("`format: password`", {"type": "string", "format": "password"}, "a", {}),
    "path": ("`format: path`", {"type": "string", "format": "path"}, "a", {}),
    "date_time": (
        "`format: date-time`",
        {"type": "string", "format": "date-time"},
        "2024-02-29T01:02:03Z",
        {},
    ),
    "name": ("a name that is not ASCII", {"type": "integer"}, 1, {}),
}


def parameter_of(name: str) -> str:
    """Return the name of the parameter of a tool."""
    return "größe" if name == "name" else "value"


def schema_of(name: str) -> dict[str, Any]:
    """Return the schema of the arguments of a tool."""
    _, schema, _, definitions = CONSTRUCTS[name]
    parameter = parameter_of(name)
    root = {
        "type": "object",
        "properties": {parameter: schema},
        "required": [parameter],
        "additionalProperties": False,
    }
    return {**root, "$defs": definitions} if definitions else root


def arguments_of(name: str) -> dict[str, Any]:
    """Return arguments that the schema accepts."""
    return {parameter_of(name): CONSTRUCTS[name][2]}


def echo_of(arguments: object) -> str:
    """Return the text that a tool answers: compact, because Copilot CLI encodes it again."""
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def rating(name: str, received: object) -> str:
    """Return whether a client keeps or changes a construct; `received` is the model's schema."""
    given = schema_of(name)
    del given["additionalProperties"]  # some frameworks send a few keywords of the root only
    return "kept" if contains(received, given) else "changed"


def contains(received: object, given: object) -> bool:
    """True if a schema has all keywords of another one."""
    if isinstance(given, dict) and isinstance(received, dict):
        return all(key in received and contains(received[key], given[key]) for key in given)
    if isinstance(given, list) and isinstance(received, list):
        return len(given) == len(received) and all(map(contains, received, given))
    return received == given


def answer(method: str, params: dict[str, Any], names: list[str]) -> dict[str, Any] | None:
    """Return the result of a request, or None if the method is unknown."""
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "constructs", "version": "1"},
        }
    if method == "tools/list":
        return {
            "tools": [
                {"name": name, "description": f"Try {name}.", "inputSchema": schema_of(name)}
                for name in names
            ]
        }
    if method == "tools/call":
        return {"content": [{"type": "text", "text": echo_of(params.get("arguments"))}]}
    return {} if method == "ping" else None


def serve(names: list[str]) -> None:
    """Serve MCP on stdin and stdout."""
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(request["method"], request.get("params") or {}, names)
        response: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        if result is None:
            response["error"] = {"code": -32601, "message": "Method not found"}
        else:
            response["result"] = result
        sys.stdout.buffer.write(json.dumps(response).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    serve([name for name in sys.argv[1:] if name in CONSTRUCTS] or list(CONSTRUCTS))
