"""Typed Python functions: one for each tool, for programs that are not agents."""

from __future__ import annotations

import sys

from tooli.core.tool import MISSING
from tooli.export import python_source
from tooli.export.export_spec import RESERVED_NAMES, exported_tools
from tooli.export.module_source import (
    call_target,
    fill_template,
    module_docstring,
    render_module,
    standard_imports,
)
from tooli.export.python_source import SourceText, class_name, identifier
from tooli.export.python_types import PythonTypes
from tooli.export.runner_source import build_runner
from tooli.schema.json_schema import output_schema
from tooli.schema.tool_reader import return_annotation
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.export.export_spec import ExportedTool, ExportSpec


_MAX_DEFAULT_LENGTH = 60
"""Longer defaults are not written out: the command knows them."""


def render(spec: ExportSpec) -> dict[str, str]:
    """The module `NAME_api.py`."""
    tools = exported_tools(spec)
    types = PythonTypes(RESERVED_NAMES)
    functions = [_function(spec, entry, types) for entry in tools]
    own = (
        [_GIVEN_TEMPLATE.strip()] if any(["**given(" in function for function in functions]) else []
    )
    use = f"    from {spec.module_stem}_api import {tools[0].variable}" if tools else ""
    runner = build_runner(spec, tools, is_async=False)
    if spec.is_in_process:
        standard: list[str] = []
        constants = ""
        note = "The errors are tooli's own: tooli.ToolError and those below it."
    else:
        standard = [name for name in standard_imports(runner) if "typing" not in name]
        constants = runner.constants
        flags = any([entry.flags for entry in tools])
        own += [
            *runner.functions,
            _ERROR_TEMPLATE.strip(),
            fill_template(_RUN_TEMPLATE, _run_template_values(flags)),
        ]
        note = "What a command refuses or fails with is raised: a CommandError, with its code."
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
    """What the annotations of a module are made of."""
    if any(["Any" in part for part in sources]):
        types.imported_names.add("Any")
    homes = {"Path": "pathlib", "Sequence": "collections.abc"}
    lines = [f"from {homes[name]} import {name}" for name in types.imported_names & homes.keys()]
    names = sorted(types.imported_names - homes.keys())
    return [*lines, f"from typing import {', '.join(names)}"] if names else lines


def _run_template_values(flags: bool) -> dict[str, str]:
    return {
        "flags": "\n    flags: tuple[str, ...] = ()," if flags else "",
        "given": ", flags" if flags else "",
    }


# ------------------------------------------------------------------ one function


class _Parameter:
    """One parameter of a wrapper: how it is written, and what is passed on of it."""

    def __init__(
        self, entry: ExportedTool, name: str, types: PythonTypes, imported_names: set[str]
    ) -> None:
        schema = entry.schema["properties"][name]
        param = entry.tool.param(name)
        hint = _class_name(param.annotation) if param is not None else None
        kind = types.parameter_type(schema, hint or class_name(entry.variable, name))
        self.name = name
        self.variable = identifier(name, imported_names)
        imported_names.add(self.variable)
        self.required = name in entry.schema.get("required", ())
        self.description = schema.get("description")
        value = schema.get("default")
        fixed = "default" in schema and not is_list(value) and not is_object(value)
        fixed = fixed and len(str(value)) <= _MAX_DEFAULT_LENGTH
        self.is_omitted_if_none = not self.required and not fixed  # None stands for: not given
        if self.is_omitted_if_none and "None" not in kind.split(" | ") and kind != "Any":
            kind += " | None"
        self.source = f"{self.variable}: {kind}"
        if not self.required:
            self.source += (
                f" = {python_source.value_literal(None if self.is_omitted_if_none else value)}"
            )


def _function(spec: ExportSpec, entry: ExportedTool, types: PythonTypes) -> str:
    used = {"app", "run", "given"}
    names = [
        name for name in entry.schema.get("properties", {}) if name not in _omitted_flags(entry)
    ]
    found = [_Parameter(entry, name, types, used) for name in names]
    found.sort(key=lambda parameter: not parameter.required)
    head = python_source.function_signature(
        entry.variable,
        [parameter.source for parameter in found],
        _return_annotation(spec, entry, types),
    )
    body = (
        _in_process_call(entry, found)
        if spec.is_in_process
        else _subprocess_call(spec, entry, found)
    )
    return f"{head}\n{python_source.docstring(_function_docstring(entry, found), '    ')}\n    return {body}"


def _omitted_flags(entry: ExportedTool) -> set[str]:
    """What only models need: a plan instead of a result, which would be of another type."""
    return {"dry_run"}.intersection(entry.flags)


def _function_docstring(entry: ExportedTool, parameters: list[_Parameter]) -> str:
    """The docstring: what the tool does, and what is known of its parameters."""
    lines = [python_source.wrap_text(entry.description, width=python_source.MAX_LINE_LENGTH - 4)]
    known = [parameter for parameter in parameters if parameter.description]
    if known:
        lines += ["", "Args:"]
    for parameter in known:
        text = f"{parameter.variable}: {parameter.description}"
        first, *rest = python_source.wrap_text(
            text, width=python_source.MAX_LINE_LENGTH - 12
        ).split("\n")
        lines += [f"    {first}", *[f"        {line}" if line else "" for line in rest]]
    return "\n".join(lines)


def _subprocess_call(spec: ExportSpec, entry: ExportedTool, parameters: list[_Parameter]) -> str:
    arguments: dict[Any, Any] = {
        p.name: SourceText(p.variable) for p in parameters if not p.is_omitted_if_none
    }
    optional_source = _optional_arguments(parameters)
    rest: dict[str, Any] = {"timeout": entry.timeout} if entry.timeout is not None else {}
    flags = tuple([flag for flag in entry.flags if flag not in _omitted_flags(entry)])
    if flags:
        rest["flags"] = flags
    if optional_source:
        arguments[SourceText(optional_source)] = None
    return python_source.call_source(
        "run", call_target(spec, entry), arguments, depth=1, columns_before=7, **rest
    )


def _in_process_call(entry: ExportedTool, parameters: list[_Parameter]) -> str:
    plain = {p.name: SourceText(p.variable) for p in parameters if not p.is_omitted_if_none}
    renamed = {name: plain.pop(name) for name in list(plain) if name != identifier(name)}
    more = [f"**{python_source.value_literal(renamed, depth=-1000)}"] if renamed else []
    more += [optional_source] if (optional_source := _optional_arguments(parameters)) else []
    named = [SourceText(f"{name}={value}") for name, value in plain.items()]
    call_arguments = [entry.tool.key, *named, *map(SourceText, more)]
    return (
        python_source.call_source("app.call", *call_arguments, depth=1, columns_before=16)
        + ".unwrap()"
    )


def _optional_arguments(parameters: list[_Parameter]) -> str:
    """The arguments that are passed on only where they are given."""
    dropped = [p for p in parameters if p.is_omitted_if_none]
    plain = [f"{p.name}={p.variable}" for p in dropped if p.name == identifier(p.name)]
    renamed = [
        f"{python_source.string_literal(p.name)}: {p.variable}"
        for p in dropped
        if p.name != identifier(p.name)
    ]
    call_arguments = [*plain, *(["**{" + ", ".join(renamed) + "}"] if renamed else [])]
    return f"**given({', '.join(call_arguments)})" if call_arguments else ""


# ------------------------------------------------------------------ results


def _return_annotation(spec: ExportSpec, entry: ExportedTool, types: PythonTypes) -> str:
    """The type of a result: JSON's, or in the same process what the function itself gives."""
    try:
        annotation = return_annotation(entry.tool)
    except Exception:  # it names what only type checkers see
        return "Any"
    if annotation in (None, type(None)):
        return "None" if spec.is_in_process else "Any"  # a program's printed text is its result
    if annotation is MISSING or (spec.is_in_process and not _is_native(annotation)):
        return "Any"
    name = _class_name(annotation) or class_name(entry.variable, "result")
    return types.return_type(output_schema(entry.tool), name)


def _class_name(annotation: Any) -> str | None:
    """The name of the one class with parts that an annotation is about."""
    parts = [part for part in getattr(annotation, "__args__", ()) if part is not type(None)]
    if parts:
        names = {name for name in map(_class_name, parts) if name}
        return names.pop() if len(names) == 1 else None
    if hasattr(annotation, "__origin__"):
        return None
    if isinstance(annotation, type) and annotation.__module__ != "builtins":
        return annotation.__name__
    return None


def _is_native(annotation: Any) -> bool:
    """Whether values of an annotation are of JSON's own types already."""
    typing = sys.modules.get("typing")
    if annotation in (str, int, float, bool, dict, list, None, type(None)):
        return True
    if typing is not None and (annotation is typing.Any or typing.is_typeddict(annotation)):
        return True
    origin = getattr(annotation, "__origin__", None)
    kind = getattr(origin, "__name__", None) or type(annotation).__name__
    if kind == "Literal" or getattr(origin, "_name", None) == "Literal":
        return True
    known = ("list", "dict", "UnionType", "Union", "_UnionGenericAlias", "Optional")
    streams = ("Iterator", "Iterable", "Generator", "AsyncIterator", "AsyncGenerator")
    if kind in known or getattr(origin, "_name", None) == "Union":
        return all([_is_native(part) for part in annotation.__args__])
    return kind in streams and _is_native(annotation.__args__[0])


_GIVEN_TEMPLATE = '''
def given(**arguments: Any) -> dict[str, Any]:
    """Those that are not None: what is left out, the command decides itself."""
    return {name: value for name, value in arguments.items() if value is not None}
'''

_ERROR_TEMPLATE = '''
class CommandError(Exception):
    """What a command refused or failed with."""

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
    words: list[str],
    arguments: dict[str, Any],
    timeout: float = TIMEOUT,$flags
) -> Any:
    """The result of a command."""
    envelope = call(words, arguments, timeout$given)
    if not envelope["ok"]:
        raise CommandError(envelope["error"])
    return envelope.get("result")
'''
