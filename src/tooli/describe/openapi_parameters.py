"""Parameters of HTTP operations beside the body: framework options and request headers."""

from __future__ import annotations

from tooli.core.options import Option, options_for

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.tool import Tool

_HEADERS_BEFORE_OPTIONS = {
    "Prefer": (
        'With `handling=strict`, the body must match its schema exactly: the string `"7"` is not '
        "an integer, and formats are validated. Other preferences are ignored."
    ),
}
_HEADERS_AFTER_OPTIONS = {
    "Tooli-Caller": "Name of the caller. It is recorded and has no effect on permissions.",
    "Tooli-Caller-Version": "Version of the caller.",
    "Tooli-Session-Id": "Session that the call belongs to.",
}


def shared_parameters() -> dict[str, Any]:
    """Return the parameters that all operations have, by name."""
    options = _options_listed_in("all")
    query = [_option_parameter(option) for option in options if option.header is None]
    headers = [
        *[_header(*row) for row in _HEADERS_BEFORE_OPTIONS.items()],
        *[_option_parameter(option) for option in options if option.header is not None],
        *[_header(*row) for row in _HEADERS_AFTER_OPTIONS.items()],
    ]
    return {parameter["name"]: parameter for parameter in (*query, *headers)}


def operation_parameters(tool: Tool) -> list[dict[str, Any]]:
    """Return the parameters of a tool's operation: the shared ones, and those that it supports."""
    parameters = [{"$ref": f"#/components/parameters/{name}"} for name in shared_parameters()]
    kinds = ["paginated"] if tool.limits.paginated else []
    kinds += ["plannable"] if getattr(tool.fn, "tooli_supports_dry_run", False) else []
    for kind in kinds:
        parameters += [_option_parameter(option) for option in _options_listed_in(kind)]
    return parameters


def _options_listed_in(operations: str) -> list[Option]:
    """Return the options that are listed in "all", "paginated" or "plannable" operations."""
    options = dict.fromkeys(options_for("http").values())
    return [option for option in options if option.in_openapi == operations]


def _option_parameter(option: Option) -> dict[str, Any]:
    location = "query" if option.header is None else "header"
    return _parameter(
        location, option.header or option.name, option.json_schema, option.description
    )


def _header(name: str, description: str) -> dict[str, Any]:
    return _parameter("header", name, {"type": "string"}, description)


def _parameter(
    location: str, name: str, schema: dict[str, Any], description: str
) -> dict[str, Any]:
    return {"name": name, "in": location, "description": description, "schema": schema}
