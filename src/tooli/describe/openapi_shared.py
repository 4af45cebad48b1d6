"""The schemas and responses that all operations of an OpenAPI document share."""

from __future__ import annotations

from tooli.errors import ERROR_CODES, PartialFailure

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import JsonObject


def object_schema(properties: JsonObject, *required: str, **more: object) -> JsonObject:
    """Return the schema of an object."""
    return {"type": "object", **more, "properties": properties, "required": [*required]}


def _field(description: str, kind: str = "string", **more: object) -> JsonObject:
    if kind == "object":  # generators read an object without properties as one that has none
        more = {"additionalProperties": True, **more}
    return {"type": kind, **more, "description": description}


_TEXT: JsonObject = {"type": "string"}
_ANY_OBJECT: JsonObject = {"type": "object", "additionalProperties": True}
META: JsonObject = {"$ref": "#/components/schemas/CallMeta"}
OK: JsonObject = {"type": "boolean", "enum": [True]}

META_FIELDS: dict[str, JsonObject] = {
    "tool": _field("The app and the command, such as `notes.add`."),
    "version": _field("The version of the command or its app."),
    "duration_ms": _field("The duration of the call in milliseconds.", "integer", minimum=0),
    "warnings": _field("Messages about the call that are not errors.", "array", items=_TEXT),
    "dry_run": {**OK, "description": "The call was a dry run; the result is a plan."},
    "applied": _field("What a call with `--apply` did, with digests before and after.", "object"),
    "deprecated": {
        "type": ["boolean", "string"],
        "description": "The command is deprecated; may contain a message.",
    },
    "caller_id": _field("The name of the caller."),
    "caller_version": _field("The version of the caller."),
    "session_id": _field("The session that the call belongs to."),
    "request_id": _field("The id of the request in the server's log."),
    "execution_context": _field("The category of the caller, such as `ai_agent` or `ci_cd`."),
    "contract": {
        "type": "string",
        "description": "The version of the envelope's format (`--response-format detailed`).",
    },
    "output_schema": {"description": "The schema of the result (`--response-format detailed`)."},
    "page": _field(
        "A page of a longer result: `limit`, `next_cursor` and `total`.",
        "object",
        properties={
            "limit": {"type": "integer"},
            "next_cursor": _TEXT,
            "total": {"type": "integer"},
        },
    ),
    "truncated": _field(
        "How the result was cut: `shown`, `total`, `by`, `unit`, `full` and more.", "object"
    ),
    "next": _field(
        "Calls that may come next, with `why`: `argv` on a command line, else `arguments`.",
        "array",
        items=_ANY_OBJECT,
    ),
    "idempotency": _field("The idempotency key: `key`, `replayed` and `first_run`.", "object"),
    "artifacts": _field(
        "What the call made: `name`, `uri` and `mime_type` of each.", "array", items=_ANY_OBJECT
    ),
    "calls": _field("How often a script called each tool.", "object"),
    "printed": _field("What a script printed."),
    "sandbox": _field("The sandbox that ran a script."),
    "enforcement": _field("How the declared capabilities were enforced, such as `audit`."),
}
"""The fields of `meta` in an envelope; only `tool` and `duration_ms` are always present."""


def shared_schemas() -> JsonObject:
    """Return the schemas of the envelopes, by name."""
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
    categories = ["input", "auth", "human", "state", "runtime", "internal"]
    error_fields: JsonObject = {
        "code": {**_TEXT, "examples": ["E1003"]},
        "category": {**_TEXT, "enum": categories},
        "message": _TEXT,
        "field": _field("The parameter that caused the error."),
        "suggestion": object_schema(
            suggestion_fields, "action", "fix", "applicability", description=about
        ),
        "is_retryable": {"type": "boolean"},
        "details": _ANY_OBJECT,
    }
    error = {"$ref": "#/components/schemas/CallError"}
    plan = {"$ref": "#/components/schemas/CallPlan"}
    not_ok = {"type": "boolean", "enum": [False]}
    return {
        "CallError": object_schema(error_fields, "code", "category", "message", "is_retryable"),
        "CallFailure": object_schema(
            {"ok": not_ok, "error": error, "result": _PARTIAL_RESULT, "meta": META},
            *("ok", "error", "meta"),
            additionalProperties=False,
        ),
        "CallMeta": object_schema({**META_FIELDS}, "tool", "duration_ms"),
        "CallPlan": _plan_schema(),
        "PlanAnswer": answer_schema(plan, is_required=True),
    }


_PARTIAL_RESULT: JsonObject = {
    "type": "array",
    "items": {},
    "description": "The items that succeeded, if others failed.",
}


def answer_schema(result: JsonObject, *, is_required: bool) -> JsonObject:
    """Return the schema of a success. `is_required` is False if the result may be null."""
    required = ("ok", "result", "meta") if is_required else ("ok", "meta")
    fields = {"ok": OK, "result": result, "meta": META}
    return object_schema(fields, *required, additionalProperties=False)


def _plan_schema() -> JsonObject:
    """Return the schema of a plan, the result of a dry run (docs/plans.md)."""
    known = {"action": _TEXT, "target": _TEXT, "details": _ANY_OBJECT, "state": _TEXT}
    action = object_schema(known, "action", "target")
    fields: JsonObject = {
        "tool": _TEXT,
        "arguments": _ANY_OBJECT,
        "effects": {"type": "array", "items": _TEXT},
        "basis": {**_TEXT, "enum": ["declared", "dry_run"]},
    }
    more = {"actions": {"type": "array", "items": action}, "state": _TEXT, "token": _TEXT}
    more["complete"] = _field("False: the script does more that cannot be planned.", "boolean")
    stopped = {"line": {"type": "integer"}, "reason": _TEXT}
    more["stopped"] = object_schema(stopped, "line", description="Where the plan of a script ends.")
    return object_schema({**fields, **more}, *fields, description="The result of a dry run.")


PREFERENCE_HEADERS: JsonObject = {
    "Preference-Applied": {"$ref": "#/components/headers/Preference-Applied"}
}
GET_HEADERS: JsonObject = {
    name: {"$ref": f"#/components/headers/{name}"} for name in ("ETag", "Link")
}


def header_components() -> JsonObject:
    """Return the headers of responses, by name."""
    about = {
        "Preference-Applied": "The body was validated as `Prefer: handling=strict` requests.",
        "ETag": "Identifies the result. Send it as `If-None-Match` to get it only if it changed.",
        "Link": 'The URL of the next page, with `rel="next"`.',
        "Retry-After": "Seconds to wait before the next request.",
        "WWW-Authenticate": "Why the token was refused, or which scopes are missing.",
    }
    return {name: {"description": text, "schema": _TEXT} for name, text in about.items()}


_CATEGORIES = {"1": "input", "2": "auth", "3": "state", "4": "runtime", "5": "internal"}


def failure_response() -> JsonObject:
    """Return the response for every failure, with the meaning of its statuses."""
    by_status: dict[int, list[str]] = {}
    for code, (meaning, _, status, *_rest) in ERROR_CODES.items():
        by_status.setdefault(status, []).append(f"{code} {meaning}")
    rows = [f"- {status}: {'; '.join(by_status[status])}." for status in sorted(by_status)]
    headers = ("Preference-Applied", "Retry-After", "WWW-Authenticate")
    return {
        "description": "\n".join(["The call failed. The status depends on the error code:", *rows]),
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in headers},
        "content": {
            "application/json": {
                "schema": {"$ref": "#/components/schemas/CallFailure"},
                "examples": {code: {"value": _example_failure(code)} for code in ERROR_CODES},
            }
        },
    }


def _example_failure(code: str) -> JsonObject:
    category = "human" if code.startswith("E21") else _CATEGORIES[code[1]]
    error: JsonObject = {
        "code": code,
        "category": category,
        "message": ERROR_CODES[code][0],
        "is_retryable": category == "input"
        or code in ("E4029", "E4050", "E4075", "E4130", "E4143"),
    }
    meta: JsonObject = {"tool": "app.command", "duration_ms": 1}
    if code == PartialFailure.code:
        error["details"] = {
            "summary": {"total": 2, "succeeded": 1, "failed": 1, "retryable": 0},
            "errors": [{"item": "b", **_example_failure("E3010")["error"]}],
        }
        return {"ok": False, "error": error, "result": ["a"], "meta": meta}
    return {"ok": False, "error": error, "meta": meta}
