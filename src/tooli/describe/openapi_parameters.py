"""What every operation of the HTTP door takes beside its body: options, and headers."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from tooli.core.tool import Tool

    ParameterSpec: TypeAlias = tuple[str, dict[str, Any], str]

_STRING: dict[str, Any] = {"type": "string"}
_QUERY_PARAMETERS: tuple[ParameterSpec, ...] = (
    ("dry_run", {"type": "boolean"}, "Check the call and say what would happen; nothing does."),
    ("yes", {"type": "boolean"}, "Confirm a command that may destroy data."),
    (
        "response_format",
        {"type": "string", "enum": ["concise", "detailed"]},
        "`concise` leaves out what the result's schema marks with `detail`; "
        "with `detailed`, `meta.output_schema` describes the result.",
    ),
    (
        "timeout",
        {"type": "number", "exclusiveMinimum": 0, "maximum": 10_000_000},
        "Seconds after which the call is stopped (E4050), in plain digits; "
        "what the command itself allows is not exceeded.",
    ),
)
_PAGING_PARAMETERS: tuple[ParameterSpec, ...] = (
    ("limit", {"type": "integer", "minimum": 0}, "Records on a page; 0 is all of them."),
    ("cursor", {"type": "string"}, "Where to go on: `meta.page.next_cursor` of the page before."),
)
"""Said of paginated commands alone; every command takes them, and more of the kind."""
_APPLY_PARAMETER = (
    "apply",
    {"type": "string"},
    "Run exactly the plan that a dry run gave a token for.",
)
"""Said of commands that tell what they would do."""
_HEADER_PARAMETERS: tuple[ParameterSpec, ...] = (
    (
        "Prefer",
        _STRING,
        'With `handling=strict`, the body must be valid by its schema to the letter: `"7"` is no '
        "integer, and formats count. Other preferences are ignored.",
    ),
    (
        "Idempotency-Key",
        {"type": "string", "pattern": '^"*[!#-~]([!-~]{0,253}[!#-~])?"*$'},
        "One word: a call that is made again with the same key gets the first answer, and does "
        "not run again.",
    ),
    ("Tooli-Caller", _STRING, "Who calls; it is noted, and decides nothing."),
    ("Tooli-Caller-Version", _STRING, "The version of who calls."),
    ("Tooli-Session-Id", _STRING, "The session that the call belongs to."),
)


def shared_parameters() -> dict[str, Any]:
    """What all operations take, by name."""
    placed = [("query", spec) for spec in _QUERY_PARAMETERS] + [
        ("header", spec) for spec in _HEADER_PARAMETERS
    ]
    return {spec[0]: _parameter(location, *spec) for location, spec in placed}


def operation_parameters(tool: Tool) -> list[dict[str, Any]]:
    """What one operation takes: that, and what its command gives a meaning to."""
    parameters = [
        {"$ref": f"#/components/parameters/{name}"}
        for name, *_ in (*_QUERY_PARAMETERS, *_HEADER_PARAMETERS)
    ]
    if tool.limits.paginated:
        parameters += [_parameter("query", *spec) for spec in _PAGING_PARAMETERS]
    if getattr(tool.fn, "tooli_supports_dry_run", False):
        parameters.append(_parameter("query", *_APPLY_PARAMETER))
    return parameters


def _parameter(
    location: str, name: str, schema: dict[str, Any], description: str
) -> dict[str, Any]:
    return {"name": name, "in": location, "description": description, "schema": schema}
