"""What every operation of the HTTP door takes beside its body: options, and headers."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from tooli.contract.tool import Tool

    Said: TypeAlias = tuple[str, dict[str, Any], str]

_TEXT: dict[str, Any] = {"type": "string"}
_OPTIONS: tuple[Said, ...] = (
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
_PAGING: tuple[Said, ...] = (
    ("limit", {"type": "integer", "minimum": 0}, "Records on a page; 0 is all of them."),
    ("cursor", {"type": "string"}, "Where to go on: `meta.page.next_cursor` of the page before."),
)
"""Said of paginated commands alone; every command takes them, and more of the kind."""
_APPLYING = ("apply", {"type": "string"}, "Run exactly the plan that a dry run gave a token for.")
"""Said of commands that tell what they would do."""
_HEADERS: tuple[Said, ...] = (
    (
        "Prefer",
        _TEXT,
        'With `handling=strict`, the body must be valid by its schema to the letter: `"7"` is no '
        "integer, and formats count. Other preferences are ignored.",
    ),
    (
        "Idempotency-Key",
        {"type": "string", "pattern": '^"*[!#-~]([!-~]{0,253}[!#-~])?"*$'},
        "One word: a call that is made again with the same key gets the first answer, and does "
        "not run again.",
    ),
    ("Tooli-Caller", _TEXT, "Who calls; it is noted, and decides nothing."),
    ("Tooli-Caller-Version", _TEXT, "The version of who calls."),
    ("Tooli-Session-Id", _TEXT, "The session that the call belongs to."),
)


def shared_parameters() -> dict[str, Any]:
    """What all operations take, by name."""
    placed = [("query", said) for said in _OPTIONS] + [("header", said) for said in _HEADERS]
    return {said[0]: _parameter(where, *said) for where, said in placed}


def parameters_of(tool: Tool) -> list[dict[str, Any]]:
    """What one operation takes: that, and what its command gives a meaning to."""
    said = [{"$ref": f"#/components/parameters/{name}"} for name, *_ in (*_OPTIONS, *_HEADERS)]
    if tool.limits.paginated:
        said += [_parameter("query", *one) for one in _PAGING]
    if getattr(tool.fn, "tooli_rehearses", False):
        said.append(_parameter("query", *_APPLYING))
    return said


def _parameter(where: str, name: str, schema: dict[str, Any], about: str) -> dict[str, Any]:
    return {"name": name, "in": where, "description": about, "schema": schema}
