"""Build the OpenAPI 3.1 document of an app.

    POST /tools/{command}     a call with the arguments as JSON
    GET  /tools/{command}     the same with the arguments in the query; commands that only read
    POST /plans/{command}     the plan of the call; commands that may change something
    POST /uploads/{command}   a call with a form; commands that take files
    POST /orchestrate         a script that calls commands

Each response is an envelope. Generators of clients make one function for each path and method, and
most of them support one media type and one result for it. Therefore plans and forms have their own
paths.
"""

from __future__ import annotations

from urllib.parse import quote

from tooli.core.options import Option, options_for
from tooli.describe.mcp_tools import description_text, tools_by_safe_name
from tooli.describe.openapi_components import Components, pascal_case
from tooli.describe.openapi_shared import (
    GET_HEADERS,
    PREFERENCE_HEADERS,
    answer_schema,
    failure_response,
    header_components,
    shared_schemas,
)
from tooli.describe.schema_text import build_request_examples
from tooli.inputs.constraints import Verbatim
from tooli.inputs.query import allows_get, can_be_in_query
from tooli.inputs.uploads import takes_several, upload_parameters
from tooli.schema.json_schema import (
    input_schema,
    named_output_schema,
    output_schema,
    param_schema,
)
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool

_FAILURE: JsonObject = {"$ref": "#/components/responses/Failure"}


def build_openapi(
    name: str,
    version: str | None,
    description: str | None,
    tools: Iterable[Tool],
    *,
    server_url: str | None = None,
    secured: bool = False,
    script_tools: tuple[Tool, Tool] | None = None,
) -> JsonObject:
    """Return the OpenAPI document.

    `secured` is True if calls need a token. `script_tools` are the tool that runs scripts, and the
    one that returns the functions that a script can call.
    """
    builder = _DocumentBuilder(tools, secured=secured)
    info: JsonObject = {"title": name, "version": version or "0"}
    if description:
        info["description"] = description
    document: JsonObject = {"openapi": "3.1.1", "info": info}
    if server_url is not None:
        document["servers"] = [{"url": server_url}]
    components: JsonObject = {
        "parameters": shared_parameters(),
        "headers": header_components(),
        "responses": {"Failure": failure_response()},
    }
    if secured:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    tags = dict.fromkeys([tag for tool in builder.tools.values() for tag in _tags(tool)])
    document["tags"] = [{"name": tag} for tag in tags]
    document["paths"] = builder.paths()
    if script_tools is not None:
        document["paths"]["/orchestrate"] = builder.script_operations(*script_tools)
    return builder.components.resolve({**document, "components": components})


def _path(tool: Tool) -> str:
    return "/".join([quote(part, safe="") for part in tool.path])


def _tags(tool: Tool) -> list[str]:
    group = tool.guidance.task_group or " ".join(tool.path[:-1])
    return list(dict.fromkeys([group, *tool.guidance.tags] if group else tool.guidance.tags))


# ------------------------------------------------------------------ operations


class _DocumentBuilder:
    """Builds the operations of all tools, and collects the schemas that they refer to."""

    def __init__(self, tools: Iterable[Tool], *, secured: bool) -> None:
        self.tools = tools_by_safe_name(tools)
        self.components = Components(_forbid_control_characters)
        self._secured = secured
        self._operation_ids = set(self.tools)
        for name, schema in shared_schemas().items():
            self.components.reserve(name, schema)

    def paths(self) -> JsonObject:
        """Return all paths with their operations."""
        calls: JsonObject = {}
        plans: JsonObject = {}
        uploads: JsonObject = {}
        for operation_id, tool in self.tools.items():
            body = self._request_body(operation_id, tool)
            success = self._success_response(operation_id, tool)
            post = {"operationId": operation_id, **self._operation(tool, body, success)}
            calls[f"/tools/{_path(tool)}"] = item = {"post": post}
            if allows_get(tool):
                item["get"] = self._get_operation(operation_id, tool, success)
            if not tool.effects.read_only:
                plans[f"/plans/{_path(tool)}"] = {
                    "post": self._plan_operation(operation_id, tool, body)
                }
            if upload_parameters(tool):
                uploads[f"/uploads/{_path(tool)}"] = {
                    "post": self._upload_operation(operation_id, tool, success)
                }
        return {**calls, **plans, **uploads}

    def script_operations(self, run: Tool, stubs: Tool) -> JsonObject:
        """Return the operations that run a script, and return the functions that it can call."""
        operation_id = self._new_id("orchestrate")
        body = self._request_body(operation_id, run)
        success = self._success_response(operation_id, run)
        operation = self._operation(run, body, success)
        operation["parameters"].append(_option_parameter(options_for("http")["dry_run"]))
        stubs_id = f"{operation_id}_stubs"
        answer = self._success_response(stubs_id, stubs)
        return {
            "post": {"operationId": operation_id, **operation},
            "get": self._get_operation(stubs_id, stubs, answer),
        }

    def _new_id(self, base: str) -> str:
        """Return an operation id that no other operation has."""
        name, count = base, 1
        while name in self._operation_ids:
            count += 1
            name = f"{base}_{count}"
        self._operation_ids.add(name)
        return name

    # -------------------------------------------------------------- one operation

    def _operation(
        self, tool: Tool, body: JsonObject | None, success: JsonObject, kind: str = "call"
    ) -> JsonObject:
        operation: JsonObject = {"tags": _tags(tool)}
        operation["summary"] = tool.doc.summary or tool.name
        operation["description"] = description_text(tool)
        if tool.deprecated:
            operation["deprecated"] = True
        if self._secured and tool.guard.scopes:
            operation["security"] = [{"token": list(tool.guard.scopes)}]
        operation["parameters"] = operation_parameters(tool, kind)
        if body is not None:
            operation["requestBody"] = body
        operation["responses"] = {"200": success, "default": _FAILURE}
        operation.update(_extensions(tool))
        return {key: value for key, value in operation.items() if value not in ([], "")}

    def _get_operation(self, operation_id: str, tool: Tool, success: JsonObject) -> JsonObject:
        answer = {**success, "headers": {**success["headers"], **GET_HEADERS}}
        operation = self._operation(tool, None, answer, "get")
        operation["parameters"] = [*self._query_parameters(tool), *operation["parameters"]]
        unchanged: JsonObject = {"description": "The result has not changed."}
        unchanged["headers"] = {"ETag": GET_HEADERS["ETag"]}
        operation["responses"] = {**operation["responses"], "304": unchanged}
        return {"operationId": self._new_id(f"get_{operation_id}"), **operation}

    def _plan_operation(self, operation_id: str, tool: Tool, body: JsonObject) -> JsonObject:
        content = {"application/json": {"schema": {"$ref": "#/components/schemas/PlanAnswer"}}}
        about = "The plan of the call. Nothing was changed."
        plan = {"description": about, "headers": PREFERENCE_HEADERS, "content": content}
        operation = self._operation(tool, body, plan, "plan")
        operation["summary"] = f"Plan: {operation['summary']}"
        return {"operationId": self._new_id(f"plan_{operation_id}"), **operation}

    def _upload_operation(self, operation_id: str, tool: Tool, success: JsonObject) -> JsonObject:
        schema = self._arguments_schema(tool)
        files = {param.name: param for param in upload_parameters(tool)}
        properties: JsonObject = {**schema.get("properties", {})}
        for name, param in files.items():
            file: JsonObject = {"type": "string", "format": "binary"}
            about = properties[name].get("description")
            described = {"description": about} if about else {}
            is_list = takes_several(param)
            properties[name] = {
                **({"type": "array", "items": file} if is_list else file),
                **described,
            }
        form = {**schema, "properties": properties}
        reference = self.components.reserve(f"{pascal_case(operation_id)}Upload", form)
        body = {"required": True, "content": {"multipart/form-data": {"schema": reference}}}
        operation = self._operation(tool, body, success)
        operation["parameters"] = [
            parameter
            for parameter in operation["parameters"]
            if parameter.get("$ref") != "#/components/parameters/Prefer"
        ]
        operation["summary"] = f"Upload: {operation['summary']}"
        return {"operationId": self._new_id(f"upload_{operation_id}"), **operation}

    # -------------------------------------------------------------- arguments

    def _arguments_schema(self, tool: Tool) -> JsonObject:
        schema = self.components.add_definitions(input_schema(tool, self.components), "input")
        properties: JsonObject = schema.get("properties", {})
        for param in tool.public_params:  # their text is not restricted
            if Verbatim in param.constraints and param.name in properties:
                plain = param_schema(param, tool.doc.params.get(param.name))
                properties[param.name] = self.components.add_definitions(plain, "input")
        verbatim = {p.name for p in tool.public_params if Verbatim in p.constraints}
        return _restrict_properties(schema, verbatim)

    def _request_body(self, operation_id: str, tool: Tool) -> JsonObject:
        schema = self._arguments_schema(tool)
        reference = self.components.reserve(f"{pascal_case(operation_id)}Arguments", schema)
        content: JsonObject = {"schema": reference}
        examples = build_request_examples(tool)
        if examples:
            content["examples"] = examples
        required = any([param.required for param in tool.public_params])
        return {"required": required, "content": {"application/json": content}}

    def _query_parameters(self, tool: Tool) -> list[JsonObject]:
        parameters: list[JsonObject] = []
        for param in tool.public_params:
            if not can_be_in_query(param):
                continue
            described = param_schema(param, tool.doc.params.get(param.name), self.components)
            schema: JsonObject = self.components.add_definitions(described, "input")
            description: str = schema.pop("description", "")
            if is_list(schema.get("anyOf")):  # a query cannot contain null
                parts = [part for part in schema["anyOf"] if part != {"type": "null"}]
                schema = parts[0] if len(parts) == 1 else {**schema, "anyOf": parts}
            if Verbatim not in param.constraints:
                schema = _forbid_control_characters(schema)
            parameter = _parameter("query", param.name, schema, description)
            parameters.append({**parameter, "required": True} if param.required else parameter)
        return parameters

    # -------------------------------------------------------------- results

    def _success_response(self, operation_id: str, tool: Tool) -> JsonObject:
        result, is_required = self._result(tool)
        schema = answer_schema(result, is_required=is_required)
        reference = self.components.reserve(f"{pascal_case(operation_id)}Answer", schema)
        content: JsonObject = {"application/json": {"schema": reference}}
        if tool.is_streaming:
            lines = "One JSON value per line. The last line of a stream that fails is the envelope."
            events = "One event per item, then `end`, or `error` with the envelope."
            content["application/x-ndjson"] = {"schema": {"type": "string", "description": lines}}
            content["text/event-stream"] = {"schema": {"type": "string", "description": events}}
        description = "The command succeeded."
        return {"description": description, "headers": PREFERENCE_HEADERS, "content": content}

    def _result(self, tool: Tool) -> tuple[JsonObject, bool]:
        """Return the schema of a tool's result, and whether every answer has one."""
        output = output_schema(tool)
        if output is None:
            is_text = tool.returns_printed_text
            return ({"type": "string"}, True) if is_text else ({}, False)
        named = named_output_schema(tool, self.components) or {}
        result = self.components.add_definitions(named, "output")
        is_required = not _allows_null(output)
        if result and tool.route is not None and tool.route.may_end_early:
            result = {"anyOf": [result, {"type": "string"}]}
        return result, is_required


def _allows_null(schema: JsonObject) -> bool:
    """True if null may match a schema. An answer with the result null has no `result`."""
    kind = schema.get("type")
    if kind is not None:
        return kind == "null" or (is_list(kind) and "null" in kind)
    if "enum" in schema:
        return None in schema["enum"]
    if "const" in schema:
        return schema["const"] is None
    for keyword in ("anyOf", "oneOf"):
        parts = schema.get(keyword)
        if is_list(parts):
            return any([not is_object(part) or _allows_null(part) for part in parts])
    return "$ref" not in schema  # only recursive models stay references, and they are objects


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


def operation_parameters(tool: Tool, kind: str = "call") -> list[JsonObject]:
    """Return the parameters of a tool's operation: a "call", a "plan" or a "get" operation.

    They are the shared ones, those for pages if the tool has pages, and those for calls that may
    change something. An option of a GET request has a prefix if a parameter has the same name.
    """
    names = [name for name in shared_parameters() if kind != "get" or name not in tool.param_names]
    parameters = [{"$ref": f"#/components/parameters/{name}"} for name in names]
    lists = ["paginated"] if tool.limits.paginated and kind != "plan" else []
    if kind == "call" and not tool.effects.read_only:
        lists.append("changing")
        lists += ["plannable"] if getattr(tool.fn, "tooli_supports_dry_run", False) else []
    for each in lists:
        parameters += [_option_parameter(option) for option in _options_listed_in(each)]
    if kind != "get":
        return parameters
    for parameter in parameters:
        if parameter.get("name") in tool.param_names:
            parameter["name"] = f"tooli_{parameter['name']}"
    return [*parameters, _header("If-None-Match", "The `ETag` of a result that the client has.")]


def _options_listed_in(operations: str) -> list[Option]:
    """Return the options that these operations list, such as "all" or "paginated" ones."""
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
    about = {"description": description} if description else {}
    return {"name": name, "in": location, **about, "schema": schema}


# ------------------------------------------------------------------ text


_NO_CONTROL_CHARACTERS = "^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]*$"
"""Pattern for strings without the control characters that the HTTP server rejects."""


def _restrict_properties(schema: JsonObject, verbatim: set[str]) -> JsonObject:
    """Return the schema of the arguments, with a pattern that forbids control characters."""
    properties: JsonObject = schema.get("properties", {})
    strict_properties = {
        name: part if name in verbatim else _forbid_control_characters(part)
        for name, part in properties.items()
    }
    return {**schema, "properties": strict_properties} if properties else schema


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
    if kind == "string" and not schema.keys() & {"pattern", "enum", "const"}:
        plain["pattern"] = _NO_CONTROL_CHARACTERS
    if kind == "object" and is_object(schema.get("additionalProperties")):
        plain.setdefault("propertyNames", {"pattern": _NO_CONTROL_CHARACTERS})
    return plain
