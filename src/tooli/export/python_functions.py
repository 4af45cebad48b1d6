"""Export tools as a Python module with one typed function per tool.

Annotations are made from JSON Schemas. An object with named properties becomes a TypedDict. Equal
objects share one TypedDict. A schema without a readable equivalent becomes `Any`.
"""

from __future__ import annotations

import typing
from keyword import iskeyword

from tooli.core.tool import MISSING
from tooli.export.export_spec import PAGE_OPTIONS, RESERVED_NAMES, exported_tools
from tooli.export.module_source import (
    build_runner,
    call_target,
    command_values,
    fill_template,
    module_docstring,
    render_module,
    standard_imports,
)
from tooli.export.python_source import (
    MAX_LINE_LENGTH,
    SourceText,
    call_source,
    class_name,
    docstring,
    function_signature,
    identifier,
    string_literal,
    value_literal,
    wrap_text,
)
from tooli.schema.json_schema import output_schema
from tooli.schema.notation import classify
from tooli.schema.tool_reader import return_annotation
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tooli.core.protocols import JsonObject
    from tooli.export.export_spec import ExportedTool, ExportSpec


_MAX_DEFAULT_LENGTH = 60
"""Maximum length of a default in a signature. Longer defaults are applied by the command."""


def render_functions(spec: ExportSpec) -> dict[str, str]:
    """Return the module `NAME_api.py`."""
    tools = exported_tools(spec)
    types = PythonTypes(RESERVED_NAMES)
    functions = [_function(spec, entry, types) for entry in tools]
    uses_without_none = any(["**without_none(" in function for function in functions])
    own = [_WITHOUT_NONE_CODE.strip()] if uses_without_none else []
    has_pages = any([_is_paged(entry) for entry in tools])
    if has_pages:
        types.imported_names.add("TypeVar")
        own.append(_PAGE_CODE.strip())
    use = f"    from {spec.module_stem}_api import {tools[0].variable}" if tools else ""
    runner = build_runner(spec, tools, "python", is_async=False)
    if spec.is_in_process:
        own += [_MAKE_PAGE_CODE.strip()] if has_pages else []
        standard: list[str] = []
        constants = ""
        note = "An error is raised as tooli.ToolError or a subclass of it."
    else:
        standard = [name for name in standard_imports(runner) if "typing" not in name]
        constants = runner.constants
        own += [
            *runner.functions,
            _ERROR_CODE.strip(),
            fill_template(_RUN_TEMPLATE, command_values(spec, tools)),
        ]
        if has_pages:
            own.append(fill_template(_RUN_PAGE_TEMPLATE, command_values(spec, tools)))
        note = "An error is raised as CommandError, which has its code."
    source = render_module(
        module_docstring(spec, "as Python functions", use, note),
        [*standard, *_typing_imports(types, [*types.classes, *own, *functions])],
        [],
        runner.app,
        constants,
        [*types.classes, *own, *functions],
        [],
    )
    return {f"{spec.module_stem}_api.py": source}


def _typing_imports(types: PythonTypes, sources: list[str]) -> list[str]:
    """Return the import lines that the annotations of a module need."""
    if any(["Any" in part for part in sources]):
        types.imported_names.add("Any")
    modules = {"Path": "pathlib", "Sequence": "collections.abc"}
    lines = [
        f"from {modules[name]} import {name}" for name in types.imported_names & modules.keys()
    ]
    names = sorted(types.imported_names - modules.keys(), key=str.lower)
    return [*lines, f"from typing import {', '.join(names)}"] if names else lines


# ------------------------------------------------------------------ one function


class _Parameter:
    """One parameter of a function: its source code, and how its value is passed to the tool."""

    def __init__(
        self, entry: ExportedTool, name: str, types: PythonTypes, imported_names: set[str]
    ) -> None:
        schema = entry.schema["properties"][name]
        param = entry.tool.param(name)
        hint = named_class(param.annotation) if param is not None else None
        kind = types.parameter_type(schema, hint or class_name(entry.variable, name))
        self.name = name
        self.variable = identifier(name, imported_names)
        imported_names.add(self.variable)
        self.required = name in entry.schema.get("required", ())
        self.description = schema.get("description")
        value = schema.get("default")
        fixed = "default" in schema and not is_list(value) and not is_object(value)
        fixed = fixed and len(str(value)) <= _MAX_DEFAULT_LENGTH
        self.is_omitted_if_none = not self.required and not fixed  # None is not passed on
        if self.is_omitted_if_none and "None" not in kind.split(" | ") and kind != "Any":
            kind += " | None"
        self.source = f"{self.variable}: {kind}"
        if not self.required:
            self.source += f" = {value_literal(None if self.is_omitted_if_none else value)}"


def _function(spec: ExportSpec, entry: ExportedTool, types: PythonTypes) -> str:
    used = {"app", "run", "without_none"}
    names = [
        name for name in entry.schema.get("properties", {}) if name not in _omitted_flags(entry)
    ]
    found = [_Parameter(entry, name, types, used) for name in names]
    found.sort(key=lambda parameter: not parameter.required)
    head = function_signature(
        entry.variable,
        [parameter.source for parameter in found],
        _return_annotation(spec, entry, types),
    )
    body = (
        _in_process_call(entry, found)
        if spec.is_in_process
        else _subprocess_call(spec, entry, found)
    )
    documentation = docstring(_function_docstring(entry, found), "    ")
    return f"{head}\n{documentation}\n    return {body}"


def _omitted_flags(entry: ExportedTool) -> set[str]:
    """Return the flags that the function lacks.

    The result of `dry_run` has another type. Only lists have pages.
    """
    omitted = ("dry_run",) if _is_paged(entry) else ("dry_run", *PAGE_OPTIONS)
    return {flag for flag in entry.flags if flag in omitted}


def _is_paged(entry: ExportedTool) -> bool:
    """True if the function returns a page."""
    if "cursor" not in entry.flags:
        return False
    schema = output_schema(entry.tool)
    return schema is None or schema.get("type", "array") == "array"


def _needs_no_limit(entry: ExportedTool) -> bool:
    """True if the result is cut by `max_tokens=` and has no pages. A program gets all of it."""
    return bool(entry.tool.limits.max_tokens) and "cursor" in _omitted_flags(entry)


def _function_docstring(entry: ExportedTool, parameters: list[_Parameter]) -> str:
    """Return the docstring: the description and the documented parameters."""
    lines = [wrap_text(entry.description, width=MAX_LINE_LENGTH - 4)]
    known = [parameter for parameter in parameters if parameter.description]
    if known:
        lines += ["", "Args:"]
    for parameter in known:
        text = f"{parameter.variable}: {parameter.description}"
        first, *rest = wrap_text(text, width=MAX_LINE_LENGTH - 12).split("\n")
        lines += [f"    {first}", *[f"        {line}" if line else "" for line in rest]]
    return "\n".join(lines)


def _subprocess_call(spec: ExportSpec, entry: ExportedTool, parameters: list[_Parameter]) -> str:
    arguments: dict[str, object] = {
        p.name: SourceText(p.variable) for p in parameters if not p.is_omitted_if_none
    }
    optional_source = _optional_arguments(parameters)
    rest: JsonObject = {"timeout": entry.timeout} if entry.timeout is not None else {}
    flags = tuple([flag for flag in entry.flags if flag not in _omitted_flags(entry)])
    if _needs_no_limit(entry):
        arguments["max_tokens"], flags = 0, (*flags, "max_tokens")
    if flags:
        rest["flags"] = flags
    if optional_source:
        arguments[SourceText(optional_source)] = None
    function = "run_page" if _is_paged(entry) else "run"
    return call_source(
        function, call_target(spec, entry), arguments, depth=1, columns_before=7, **rest
    )


def _in_process_call(entry: ExportedTool, parameters: list[_Parameter]) -> str:
    plain = {p.name: SourceText(p.variable) for p in parameters if not p.is_omitted_if_none}
    renamed = {name: plain.pop(name) for name in list(plain) if name != identifier(name)}
    more = [f"**{value_literal(renamed, depth=-1000)}"] if renamed else []
    more += [optional_source] if (optional_source := _optional_arguments(parameters)) else []
    named = [SourceText(f"{name}={value}") for name, value in plain.items()]
    if _needs_no_limit(entry):
        named.append(SourceText("max_tokens=0"))
    call_arguments = [entry.tool.key, *named, *map(SourceText, more)]
    if not _is_paged(entry):
        return call_source("app.call", *call_arguments, depth=1, columns_before=16) + ".unwrap()"
    line = f"make_page({call_source('app.call', *call_arguments, depth=-1000)})"
    if len(f"    return {line}") <= MAX_LINE_LENGTH:
        return line
    return f"make_page(\n        {call_source('app.call', *call_arguments, depth=2)}\n    )"


def _optional_arguments(parameters: list[_Parameter]) -> str:
    """Return the source for the arguments that are left out if they are None."""
    dropped = [p for p in parameters if p.is_omitted_if_none]
    plain = [f"{p.name}={p.variable}" for p in dropped if p.name == identifier(p.name)]
    renamed = [
        f"{string_literal(p.name)}: {p.variable}" for p in dropped if p.name != identifier(p.name)
    ]
    call_arguments = [*plain, *(["**{" + ", ".join(renamed) + "}"] if renamed else [])]
    return f"**without_none({', '.join(call_arguments)})" if call_arguments else ""


# ------------------------------------------------------------------ results


def _return_annotation(spec: ExportSpec, entry: ExportedTool, types: PythonTypes) -> str:
    """Return the annotation of the result.

    In import mode it is `Any` unless the tool returns JSON values.
    """
    try:
        annotation = return_annotation(entry.tool)
    except Exception:  # it names something imported under TYPE_CHECKING
        return "Any"
    if annotation in (None, type(None)):
        # The result of a program is the text that it prints.
        return "None" if spec.is_in_process else "Any"
    if annotation is MISSING or (spec.is_in_process and not _is_native(annotation)):
        is_page = _is_paged(entry) and output_schema(entry.tool) is not None
        return "Page[Any]" if is_page else "Any"
    name = named_class(annotation) or class_name(entry.variable, "result")
    source = types.return_type(output_schema(entry.tool), name)
    is_page = _is_paged(entry) and source.startswith("list[")
    return f"Page[{source[5:-1]}]" if is_page else source


def named_class(annotation: object) -> str | None:
    """Return the name of the only class in an annotation, or None."""
    parts = [part for part in getattr(annotation, "__args__", ()) if part is not type(None)]
    if parts:
        names = {name for name in map(named_class, parts) if name}
        return names.pop() if len(names) == 1 else None
    if hasattr(annotation, "__origin__"):
        return None
    if isinstance(annotation, type) and annotation.__module__ != "builtins":
        return annotation.__name__
    return None


def _is_native(annotation: object) -> bool:
    """True if values of the annotated type are JSON values."""
    if annotation in (str, int, float, bool, dict, list, None, type(None)):
        return True
    if annotation is typing.Any or typing.is_typeddict(annotation):
        return True
    origin = getattr(annotation, "__origin__", None)
    kind = getattr(origin, "__name__", None) or type(annotation).__name__
    if kind == "Literal" or getattr(origin, "_name", None) == "Literal":
        return True
    known = ("list", "dict", "UnionType", "Union", "_UnionGenericAlias", "Optional")
    streams = ("Iterator", "Iterable", "Generator", "AsyncIterator", "AsyncGenerator")
    arguments: tuple[object, ...] = getattr(annotation, "__args__", ())
    if kind in known or getattr(origin, "_name", None) == "Union":
        return all([_is_native(part) for part in arguments])
    return kind in streams and all([_is_native(part) for part in arguments[:1]])


_WITHOUT_NONE_CODE = '''
def without_none(**arguments: Any) -> dict[str, Any]:
    """Drop arguments that are None: the command uses its defaults."""
    return {name: value for name, value in arguments.items() if value is not None}
'''

_PAGE_CODE = '''
Item = TypeVar("Item")


class Page(list[Item]):
    """One page of a result.

    `next_cursor` is the cursor of the next page, or None if this is the last page. `total` is the
    number of all records, or None if it is not known.
    """

    def __init__(self, items: list[Item], meta: Any) -> None:
        super().__init__(items)
        page = meta.get("page", {})
        self.next_cursor: str | None = page.get("next_cursor")
        self.total: int | None = page.get("total")
'''

_MAKE_PAGE_CODE = '''
def make_page(outcome: Any) -> Any:
    """Return the result of a call as a page. Raises its error if it failed."""
    result = outcome.unwrap()
    return Page(result, outcome.meta) if isinstance(result, list) else result
'''

_RUN_PAGE_TEMPLATE = '''
def run_page(
    command_path: list[str],
    arguments: dict[str, Any],
    timeout: float = TIMEOUT,$flags_parameter
) -> Any:
    """Run a command and return a page of its result."""
    envelope = call(command_path, arguments, timeout$flags_argument)
    if not envelope["ok"]:
        raise CommandError(envelope["error"])
    result = envelope.get("result")
    return Page(result, envelope["meta"]) if isinstance(result, list) else result
'''

_ERROR_CODE = '''
class CommandError(Exception):
    """An error that a command reported."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.error = error
        self.code: str = error["code"]
        self.category: str = error["category"]
        self.field: str | None = error.get("field")
        self.suggestion: dict[str, Any] | None = error.get("suggestion")
        self.is_retryable: bool = error["is_retryable"]
'''

_RUN_TEMPLATE = '''
def run(
    command_path: list[str],
    arguments: dict[str, Any],
    timeout: float = TIMEOUT,$flags_parameter
) -> Any:
    """Run a command and return its result."""
    envelope = call(command_path, arguments, timeout$flags_argument)
    if not envelope["ok"]:
        raise CommandError(envelope["error"])
    return envelope.get("result")
'''


# ------------------------------------------------------------------ annotations


_PYTHON_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "object": "dict[str, Any]",
    "array": "list[Any]",
}
_PATH_TYPE = "str | Path"
_MAX_LITERAL_LENGTH = 60
"""Maximum length of a Literal. A longer one is replaced by the type of its values."""


class PythonTypes:
    """Collects the annotations of a module and the classes that they refer to."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._reserved = {*reserved}
        self._class_names: dict[str, str] = {}  # class name by fields
        self.classes: list[str] = []  # the source of each class, in order of definition
        self.imported_names: set[str] = set()

    def parameter_type(self, schema: JsonObject, name: str) -> str:
        """Return the annotation of a parameter. A path can be `str` or `pathlib.Path`."""
        return self._expression(schema, name, is_parameter=True)

    def return_type(self, schema: JsonObject | None, name: str) -> str:
        """Return the annotation of a result; `Any` if none is declared."""
        return "Any" if schema is None else self._expression(schema, name, is_parameter=False)

    def _expression(self, schema: object, name: str, is_parameter: bool) -> str:
        if not is_object(schema) or "allOf" in schema:
            return "Any"
        kind, detail = classify(schema)
        match kind:
            case "choices":
                return self._choice(detail) or _PYTHON_TYPES.get(str(schema.get("type")), "Any")
            case "union":
                return self._union(detail, name, is_parameter)
            case "tuple" if schema.get("maxItems") == len(detail) > 0:
                items = [self._expression(item, name, is_parameter) for item in detail]
                return f"tuple[{', '.join(items)}]" if is_parameter else "list[Any]"
            case "tuple" | "list":
                return self._array(schema.get("items", {}), name, is_parameter)
            case "record" if all([key.isidentifier() and not iskeyword(key) for key in detail]):
                return self._typed_dict_for(schema, detail, name, is_parameter)
            case "dict":
                return f"dict[str, {self._expression(detail, name, is_parameter)}]"
            case "record" | "object":
                return "dict[str, Any]"
            case "plain" if schema.get("format") == "path" and is_parameter:
                self.imported_names.add("Path")
                return _PATH_TYPE
            case _:
                return _PYTHON_TYPES.get(str(detail), "Any")

    def _choice(self, values: list[object]) -> str | None:
        if not all([type(value) in (str, int, bool) for value in values]):
            return None
        source = f"Literal[{', '.join([value_literal(value) for value in values])}]"
        if len(source) > _MAX_LITERAL_LENGTH:
            return None
        self.imported_names.add("Literal")
        return source

    def _union(self, parts: list[object], name: str, is_parameter: bool) -> str:
        members = dict.fromkeys(self._union_members(parts, name, is_parameter))
        if "Any" in members:
            return "Any"
        return " | ".join(sorted(members, key=lambda member: member == "None"))

    def _union_members(self, parts: list[object], name: str, is_parameter: bool) -> Iterator[str]:
        """Yield the members of a union, and those of the unions in it."""
        for part in parts:
            if is_object(part) and "allOf" not in part and classify(part)[0] == "union":
                yield from self._union_members(classify(part)[1], name, is_parameter)
            else:
                source = self._expression(part, name, is_parameter)
                yield from _PATH_TYPE.split(" | ") if source == _PATH_TYPE else [source]

    def _array(self, items: object, name: str, is_parameter: bool) -> str:
        item = self._expression(items, name, is_parameter)
        if is_parameter:  # list is invariant: list[str] is not a list[str | Path]
            self.imported_names.add("Sequence")
        return f"Sequence[{item}]" if is_parameter else f"list[{item}]"

    def _typed_dict_for(
        self, schema: JsonObject, parts: JsonObject, name: str, is_parameter: bool
    ) -> str:
        required = schema.get("required", [])
        fields = {
            key: self._expression(part, class_name(name, key), is_parameter)
            for key, part in parts.items()
        }
        key = repr((fields, sorted(required)))
        if key not in self._class_names:
            if name in self._reserved and not is_parameter:
                name = f"{name}Result"  # a result's required fields differ from a parameter's
            self._class_names[key] = name = self._unique_name(name)
            self._add_typed_dict(name, schema.get("description"), fields, required)
        return self._class_names[key]

    def _unique_name(self, name: str) -> str:
        candidate, count = name, 1
        while candidate in self._reserved:
            count += 1
            candidate = f"{name}{count}"
        self._reserved.add(candidate)
        return candidate

    def _add_typed_dict(
        self, name: str, description: object, fields: dict[str, str], required: list[str]
    ) -> None:
        """Define a TypedDict. If some fields are optional, a base class has the required ones."""
        self.imported_names.add("TypedDict")
        doc = description if isinstance(description, str) and description else None
        required_fields = {key: kind for key, kind in fields.items() if key in required}
        optional_fields = {key: kind for key, kind in fields.items() if key not in required}
        if required_fields and optional_fields:
            base = self._unique_name(f"{name}Required")
            self.classes.append(_typed_dict(base, "TypedDict", None, required_fields))
            self.classes.append(_typed_dict(name, f"{base}, total=False", doc, optional_fields))
        elif optional_fields:
            self.classes.append(_typed_dict(name, "TypedDict, total=False", doc, optional_fields))
        else:
            self.classes.append(_typed_dict(name, "TypedDict", doc, required_fields))


def _typed_dict(name: str, bases: str, description: str | None, fields: dict[str, str]) -> str:
    lines = [f"class {name}({bases}):"]
    if description is not None:
        lines += [docstring(description, "    "), ""]
    return "\n".join([*lines, *[f"    {key}: {kind}" for key, kind in fields.items()]])
