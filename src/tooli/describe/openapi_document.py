"""Build the OpenAPI 3.1 document of an app.

Each command is an operation, and each response is an envelope.
"""

from __future__ import annotations

from urllib.parse import quote

from tooli.core.options import Option, options_for
from tooli.describe.mcp_tools import description_text, tools_by_safe_name
from tooli.describe.schema_text import build_request_examples
from tooli.errors import ERROR_CODES
from tooli.inputs.constraints import Verbatim
from tooli.schema.json_schema import input_schema, output_schema
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool

_COMMON_STATUSES = (400, 403, 404, 408, 409, 413, 415, 421, 422, 429, 500, 502, 503, 504)
"""HTTP statuses of the failures that any command may return."""


def build_openapi(
    name: str,
    version: str | None,
    description: str | None,
    tools: Iterable[Tool],
    *,
    server_url: str | None = None,
    secured: bool = False,
) -> JsonObject:
    """Return the OpenAPI document. `secured` is True if calls need a token."""
    tools_by_id = tools_by_safe_name(tools)
    schemas: JsonObject = _shared_schemas()
    paths = {
        _path(tool): {"post": _operation(operation_id, tool, schemas, secured)}
        for operation_id, tool in tools_by_id.items()
    }
    info: JsonObject = {"title": name, "version": version or "0"}
    if description:
        info["description"] = description
    components: JsonObject = {
        "schemas": schemas,
        "parameters": shared_parameters(),
        "headers": _header_components(),
        "responses": _failure_responses(secured),
    }
    document: JsonObject = {"openapi": "3.1.1", "info": info}
    if server_url is not None:
        document["servers"] = [{"url": server_url}]
    if secured:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    tags = dict.fromkeys([tag for tool in tools_by_id.values() for tag in _tags(tool)])
    document["tags"] = [{"name": tag} for tag in tags]
    return {**document, "paths": paths, "components": components}


def _path(tool: Tool) -> str:
    return "/tools/" + "/".join([quote(part, safe="") for part in tool.path])


def _tags(tool: Tool) -> list[str]:
    group = tool.guidance.task_group or " ".join(tool.path[:-1])
    return list(dict.fromkeys([group, *tool.guidance.tags] if group else tool.guidance.tags))


# ------------------------------------------------------------------ operations


def _operation(operation_id: str, tool: Tool, schemas: JsonObject, secured: bool) -> JsonObject:
    operation: JsonObject = {"operationId": operation_id, "tags": _tags(tool)}
    operation["summary"] = tool.doc.summary or tool.name
    operation["description"] = description_text(tool)
    if tool.deprecated:
        operation["deprecated"] = True
    operation["parameters"] = operation_parameters(tool)
    operation["requestBody"] = _request_body(operation_id, tool, schemas)
    responses: JsonObject = {"200": _success_response(operation_id, tool, schemas)}
    for status in _statuses(tool, secured):
        responses[str(status)] = {"$ref": f"#/components/responses/Failure{status}"}
    operation["responses"] = responses
    operation.update(_extensions(tool))
    return {key: value for key, value in operation.items() if value not in ([], "")}


def _request_body(operation_id: str, tool: Tool, schemas: JsonObject) -> JsonObject:
    body = _strict_text_schema(tool, input_schema(tool))
    content: JsonObject = {"schema": _hoist_definitions(body, operation_id, schemas)}
    examples = build_request_examples(tool)
    if examples:
        content["examples"] = examples
    required = any([param.required for param in tool.public_params])
    return {"required": required, "content": {"application/json": content}}


def _success_response(operation_id: str, tool: Tool, schemas: JsonObject) -> JsonObject:
    output = output_schema(tool)
    if output is None:
        result: JsonObject = {"type": "string"} if tool.returns_printed_text else {}
    else:
        result = _hoist_definitions(output, f"{operation_id}_result", schemas)
    plan = {"$ref": "#/components/schemas/Plan"}
    text = [{"type": "string"}] if tool.route is not None and tool.route.may_end_early else []
    result = {"anyOf": [result, plan, *text]} if result else {}
    envelope = _object({"ok": {"const": True}, "result": result, "meta": _META}, "ok", "meta")
    strict_envelope = {**envelope, "additionalProperties": False}
    content: JsonObject = {"application/json": {"schema": strict_envelope}}
    if tool.is_streaming:
        lines = "One JSON value per line. The last line of a stream that fails is the envelope."
        events = "One event per item, then `end`, or `error` with the envelope."
        content["application/x-ndjson"] = {"schema": {"type": "string", "description": lines}}
        content["text/event-stream"] = {"schema": {"type": "string", "description": events}}
    description = "The command succeeded."
    return {"description": description, "headers": _PREFERENCE_HEADERS, "content": content}


def _statuses(tool: Tool, secured: bool) -> list[int]:
    statuses = {*_COMMON_STATUSES, *([401] if secured else [])}
    can_ask = any([param.kind == "injected" for param in tool.params])
    declares_428 = any(
        [ERROR_CODES[code][2] == 428 for code in tool.guidance.error_codes if code in ERROR_CODES]
    )
    if tool.behavior.destructive or tool.guard.may_need_approval or can_ask or declares_428:
        statuses.add(428)
    return sorted(statuses)


def _extensions(tool: Tool) -> JsonObject:
    """Return the facts about a tool that OpenAPI has no fields for, as `x-tooli-` extensions."""
    guard, limits, guidance = tool.guard, tool.limits, tool.guidance
    fields: JsonObject = {
        "command": " ".join([tool.app, *tool.cli_path]),
        "annotations": list(tool.effects.labels()),
        "requires-approval": guard.needs_human,
        "scopes": list(guard.scopes or ()),
        "capabilities": list(guard.capabilities),
        "danger-level": guard.danger,
        "streams": tool.is_streaming,
        "timeout": limits.timeout,
        "cost-hint": limits.cost_hint,
        "when-to-use": guidance.when_to_use,
        "error-codes": dict(guidance.error_codes),
    }
    return {f"x-tooli-{name}": value for name, value in fields.items() if value}


def _hoist_definitions(schema: JsonObject, prefix: str, schemas: JsonObject) -> JsonObject:
    """Return the schema with its definitions moved to `components/schemas`."""
    definitions: JsonObject = schema.get("$defs", {})
    if not definitions:
        return schema
    names = {f"#/$defs/{name}": f"{prefix}_{_component_name(name)}" for name in definitions}
    for name, body in definitions.items():
        schemas[names[f"#/$defs/{name}"]] = _rewrite_refs(body, names)
    return _rewrite_refs({key: value for key, value in schema.items() if key != "$defs"}, names)


def _rewrite_refs(node: Any, names: Mapping[str, str]) -> Any:
    if is_list(node):
        return [_rewrite_refs(item, names) for item in node]
    if not is_object(node):
        return node
    return {
        key: f"#/components/schemas/{names[value]}"
        if key == "$ref" and value in names
        else _rewrite_refs(value, names)
        for key, value in node.items()
        if key != "$defs"
    }


def _component_name(name: str) -> str:
    return "".join([c if c.isalnum() and c.isascii() else "_" for c in name])


# ------------------------------------------------------------------ parameters

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


def shared_parameters() -> JsonObject:
    """Return the parameters that all operations have, by name."""
    options = _options_listed_in("all")
    query = [_option_parameter(option) for option in options if option.header is None]
    headers = [
        *[_header(*row) for row in _HEADERS_BEFORE_OPTIONS.items()],
        *[_option_parameter(option) for option in options if option.header is not None],
        *[_header(*row) for row in _HEADERS_AFTER_OPTIONS.items()],
    ]
    return {parameter["name"]: parameter for parameter in (*query, *headers)}


def operation_parameters(tool: Tool) -> list[JsonObject]:
    """Return the parameters of a tool's operation.

    They are the shared ones, and those for pages and plans if the tool supports them.
    """
    parameters = [{"$ref": f"#/components/parameters/{name}"} for name in shared_parameters()]
    kinds = ["paginated"] if tool.limits.paginated else []
    kinds += ["plannable"] if getattr(tool.fn, "tooli_supports_dry_run", False) else []
    for kind in kinds:
        parameters += [_option_parameter(option) for option in _options_listed_in(kind)]
    return parameters


def _options_listed_in(operations: str) -> list[Option]:
    """Return the options that these operations list: "all", "paginated" or "plannable" ones."""
    options = dict.fromkeys(options_for("http").values())
    return [option for option in options if option.in_openapi == operations]


def _option_parameter(option: Option) -> JsonObject:
    location = "query" if option.header is None else "header"
    return _parameter(
        location, option.header or option.name, option.json_schema, option.description
    )


def _header(name: str, description: str) -> JsonObject:
    return _parameter("header", name, {"type": "string"}, description)


def _parameter(location: str, name: str, schema: JsonObject, description: str) -> JsonObject:
    return {"name": name, "in": location, "description": description, "schema": schema}


# ------------------------------------------------------------------ shared schemas and responses


_NO_CONTROL_CHARACTERS = "^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]*$"
"""Pattern for strings without the control characters that the HTTP server rejects."""


def _strict_text_schema(tool: Tool, schema: JsonObject) -> JsonObject:
    """Return the schema of the arguments, with a pattern that forbids control characters."""
    verbatim = {param.name for param in tool.public_params if Verbatim in param.constraints}
    properties: JsonObject = schema.get("properties", {})
    strict_properties = {
        name: part if name in verbatim else _forbid_control_characters(part)
        for name, part in properties.items()
    }
    rest = {
        key: _forbid_control_characters(part) if key == "$defs" else part
        for key, part in schema.items()
    }
    return {**rest, "properties": strict_properties} if properties else rest


def _forbid_control_characters(schema: Any) -> Any:
    """Add the pattern against control characters to every string and property name."""
    if is_list(schema):
        return [_forbid_control_characters(part) for part in schema]
    if not is_object(schema):
        return schema
    plain = {
        key: part
        if key in ("enum", "const", "default", "examples")
        else _forbid_control_characters(part)
        for key, part in schema.items()
    }
    kind = schema.get("type")
    text = kind == "string" and schema.get("format") != "binary"
    if text and not schema.keys() & {"pattern", "enum", "const"}:
        plain["pattern"] = _NO_CONTROL_CHARACTERS
    if kind == "object" and is_object(schema.get("additionalProperties")):
        plain.setdefault("propertyNames", {"pattern": _NO_CONTROL_CHARACTERS})
    return plain


def _object(properties: JsonObject, *required: str, **more: object) -> JsonObject:
    return {"type": "object", **more, "properties": properties, "required": [*required]}


def _field(description: str, kind: str = "string", **more: object) -> JsonObject:
    return {"type": kind, **more, "description": description}


_TEXT: JsonObject = {"type": "string"}
_META: JsonObject = {"$ref": "#/components/schemas/Meta"}

META_FIELDS: dict[str, JsonObject] = {
    "tool": _field("The app and the command, such as `notes.add`."),
    "version": _field("The version of the command or its app."),
    "duration_ms": _field("The duration of the call in milliseconds.", "integer", minimum=0),
    "warnings": _field("Messages about the call that are not errors.", "array", items=_TEXT),
    "dry_run": {"const": True, "description": "The call was a dry run; the result is a plan."},
    "applied": _field("What a call with `--apply` did, with digests before and after.", "object"),
    "deprecated": {
        "type": ["boolean", "string"],
        "description": "The command is deprecated; may contain a message.",
    },
    "caller_id": _field("The name of the caller."),
    "caller_version": _field("The version of the caller."),
    "session_id": _field("The session that the call belongs to."),
    "execution_context": _field("The category of the caller, such as `ai_agent` or `ci_cd`."),
    "contract": {
        "type": "string",
        "description": "The version of the envelope's format (`--response-format detailed`).",
    },
    "output_schema": {"description": "The schema of the result (`--response-format detailed`)."},
    "page": _field("A page of a longer result: `limit`, `next_cursor` and `total`.", "object"),
    "truncated": _field(
        "How the result was cut: `shown`, `total`, `by`, `unit`, `full` and more.", "object"
    ),
    "next": _field(
        "Calls that may come next, with `why`: `argv` on a command line, else `arguments`.",
        "array",
        items={"type": "object"},
    ),
    "idempotency": _field("The idempotency key: `key`, `replayed` and `first_run`.", "object"),
    "enforcement": _field("How the declared capabilities were enforced, such as `audit`."),
}
"""The fields of `meta` in an envelope; only `tool` and `duration_ms` are always present."""


def _shared_schemas() -> JsonObject:
    suggestion_fields: JsonObject = {
        "action": _TEXT,
        "fix": _TEXT,
        "example": _field("A request that works."),
        "command": _field("The command of that request, if it is another one."),
        "arguments": _field("The body of that request.", "object"),
        "query": _field("The query of that request.", "object"),
        "applicability": _TEXT,
    }
    about = "What to do about the error."
    error_fields: JsonObject = {
        "code": {**_TEXT, "examples": ["E1003"]},
        "category": {"enum": ["input", "auth", "human", "state", "runtime", "internal"]},
        "message": _TEXT,
        "field": _field("The parameter that caused the error."),
        "suggestion": _object(
            suggestion_fields, "action", "fix", "applicability", description=about
        ),
        "is_retryable": {"type": "boolean"},
        "details": {"type": "object"},
    }
    error = {"$ref": "#/components/schemas/Error"}
    failure = _object(
        {"ok": {"const": False}, "error": error, "meta": _META}, "ok", "error", "meta"
    )
    return {
        "Error": _object(error_fields, "code", "category", "message", "is_retryable"),
        "Failure": {**failure, "additionalProperties": False},
        "Meta": _object({**META_FIELDS}, "tool", "duration_ms"),
        "Plan": _plan_schema(),
    }


def _plan_schema() -> JsonObject:
    """Return the schema of a plan, the result of a dry run (docs/plans.md)."""
    known = {"action": _TEXT, "target": _TEXT, "details": {"type": "object"}, "state": _TEXT}
    action = _object(known, "action", "target")
    fields: JsonObject = {
        "tool": _TEXT,
        "arguments": {"type": "object"},
        "effects": {"type": "array", "items": _TEXT},
        "basis": {"enum": ["declared", "dry_run"]},
    }
    more = {"actions": {"type": "array", "items": action}, "state": _TEXT, "token": _TEXT}
    return _object({**fields, **more}, *fields, description="The result of a dry run.")


_PREFERENCE_HEADERS: JsonObject = {
    "Preference-Applied": {"$ref": "#/components/headers/Preference-Applied"}
}


def _header_components() -> JsonObject:
    schema = {"type": "string", "const": "handling=strict"}
    about = "The body was validated as `Prefer: handling=strict` requests."
    return {"Preference-Applied": {"description": about, "schema": schema}}


_CATEGORIES = {"1": "input", "2": "auth", "3": "state", "4": "runtime", "5": "internal"}


def _failure_responses(secured: bool) -> JsonObject:
    """Return a response for each HTTP status of a failure, with its error codes."""
    responses: JsonObject = {}
    for status in sorted({*_COMMON_STATUSES, 428, *([401] if secured else [])}):
        codes = {code: row[0] for code, row in ERROR_CODES.items() if row[2] == status}
        meanings = "; ".join([f"{code}: {meaning}" for code, meaning in codes.items()])
        response: JsonObject = {
            "description": f"{meanings}.",
            "content": {
                "application/json": {
                    "schema": {"$ref": "#/components/schemas/Failure"},
                    "examples": {code: {"value": _example_failure(code)} for code in codes},
                }
            },
        }
        response["headers"] = dict(_PREFERENCE_HEADERS)
        if status in (401, 403):
            response["headers"]["WWW-Authenticate"] = {"schema": {"type": "string"}}
        if status in (429, 503):
            response["headers"]["Retry-After"] = {"schema": {"type": "string"}}
        responses[f"Failure{status}"] = response
    return responses


def _example_failure(code: str) -> JsonObject:
    category = "human" if code.startswith("E21") else _CATEGORIES[code[1]]
    error = {
        "code": code,
        "category": category,
        "message": ERROR_CODES[code][0],
        "is_retryable": category == "input"
        or code in ("E4029", "E4050", "E4075", "E4130", "E4143"),
    }
    return {"ok": False, "error": error, "meta": {"tool": "app.command", "duration_ms": 1}}
