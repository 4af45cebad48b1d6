"""Typed stubs of the tools: what a model reads, and what a script is checked against.

class File(TypedDict):
    path: str
    size: int

async def find_files(pattern: str, root: str = ".") -> list[File]:
    \"\"\"Find files. pattern: A glob pattern.\"\"\"
"""

from __future__ import annotations

from tooli.core.tool import MISSING
from tooli.export.python_functions import PythonTypes, named_class
from tooli.export.python_source import (
    class_name,
    docstring,
    function_signature,
    value_literal,
)
from tooli.orchestrate.script_tools import BARRIER, default_of, is_required
from tooli.schema.json_schema import output_schema
from tooli.schema.tool_reader import return_annotation
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tooli.core.protocols import JsonObject
    from tooli.orchestrate.script_tools import ScriptTool

_MAX_DEFAULT_LENGTH = 40
_TYPING_NAMES = ("Any", "Literal", "NotRequired", "TypedDict")

_CHECKER_STUBS = f"""
def {BARRIER}() -> None: ...
class PermissionError(OSError): ...
class FileNotFoundError(OSError): ...
def map(function: Any, items: Any, *more: Any) -> list[Any]: ...
def filter(function: Any, items: Any) -> list[Any]: ...
def format(value: object, spec: str = "") -> str: ...
def getattr(target: object, name: str, default: Any = None) -> Any: ...
def hasattr(target: object, name: str) -> bool: ...
def setattr(target: object, name: str, value: object) -> None: ...
"""
"""Functions that the sandbox has and its type checker does not know."""


def render_stubs(tools: Iterable[ScriptTool]) -> str:
    """Return the stubs of these tools, as `.pyi` source."""
    types = _StubTypes()
    functions = [_function_stub(tool, types) for tool in tools]
    body = "\n".join([*types.classes, *functions])
    return f"{_imports(body)}{body}\n" if functions else ""


def render_checker_stubs(tools: Iterable[ScriptTool], inputs: Mapping[str, object]) -> str:
    """Return the stubs that a script is checked against: with its inputs, and all builtins."""
    variables = [f"{name}: {_type_of(value)}" for name, value in inputs.items()]
    imports = "from collections.abc import Sequence\nfrom typing import Any\n"
    return "\n".join([imports + render_stubs(tools), *variables, _CHECKER_STUBS])


def _imports(body: str) -> str:
    names = [name for name in _TYPING_NAMES if name in body]
    lines = ["from collections.abc import Sequence\n"] if "Sequence[" in body else []
    lines += [f"from typing import {', '.join(names)}\n"] if names else []
    return "".join([*lines, "\n"]) if lines else ""


class _StubTypes(PythonTypes):
    """The annotations of stubs: arguments and results are JSON values."""

    def __init__(self) -> None:
        super().__init__((*_TYPING_NAMES, "Sequence"))
        self._is_argument = False

    def argument_type(self, schema: JsonObject, name: str) -> str:
        """Return the annotation of an argument. A list of any kind is accepted."""
        self._is_argument = True  # the description of its class is that of the parameter
        source = self._expression(schema, name, is_parameter=False)
        self._is_argument = False
        # list is invariant: a variable with a list[int] is no list[int | str].
        items = source[5:-1] if source.startswith("list[") else ""
        return f"Sequence[{items}]" if " | " in items else source

    def _add_typed_dict(
        self, name: str, description: object, fields: dict[str, str], required: list[str]
    ) -> None:
        lines = [f"class {name}(TypedDict):"]
        if isinstance(description, str) and description and not self._is_argument:
            lines.append(docstring(_one_line(description), "    "))
        for key, kind in fields.items():
            lines.append(f"    {key}: {kind if key in required else f'NotRequired[{kind}]'}")
        self.classes.append("\n".join(lines))


def _function_stub(entry: ScriptTool, types: _StubTypes) -> str:
    params: list[str] = []
    for name, key in entry.parameters.items():
        part = entry.schema["properties"][key]
        param = entry.tool.param(key)
        hint = None if param is None else named_class(param.annotation)
        hint = hint or class_name(entry.name, name)
        kind = types.argument_type(part, hint) if is_object(part) else "Any"
        params.append(_parameter(entry, name, kind))
    signature = function_signature(entry.name, params, _result_type(entry, types), is_async=True)
    return f"{signature}\n{docstring(_description(entry), '    ')}"


def _result_type(entry: ScriptTool, types: _StubTypes) -> str:
    try:
        annotation = return_annotation(entry.tool)
    except Exception:  # it names something imported under TYPE_CHECKING
        annotation = None
    name = named_class(annotation) or class_name(entry.name, "result")
    return types.return_type(output_schema(entry.tool), name)


def _parameter(entry: ScriptTool, name: str, kind: str) -> str:
    if is_required(entry, name):
        return f"{name}: {kind}"
    default = default_of(entry, name)
    is_short = default is not MISSING and not is_list(default) and not is_object(default)
    if not is_short or len(str(default)) > _MAX_DEFAULT_LENGTH:
        return f"{name}: {kind} = ..."
    return f"{name}: {kind} = {value_literal(default)}"


def _description(entry: ScriptTool) -> str:
    """Return the docstring: what the tool does, its effects, and its parameters."""
    tool = entry.tool
    sentences = [_sentence(tool.doc.summary or tool.key)]
    if tool.guard.needs_human:
        sentences.append("A human must approve each call.")
    elif tool.behavior.destructive:
        sentences.append("Destructive.")
    for name, key in entry.parameters.items():
        part = entry.schema["properties"][key]
        text = part.get("description") if is_object(part) else None
        if isinstance(text, str) and text:
            sentences.append(f"{name}: {_sentence(text)}")
    return " ".join(sentences)


def _sentence(text: str) -> str:
    line = _one_line(text)
    return line if line[-1:] in ".!?" else f"{line}."


def _one_line(text: str) -> str:
    return " ".join(text.split())


# ------------------------------------------------------------------ inputs


def _type_of(value: object) -> str:
    """Return the annotation of an input, which is a JSON value."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return "None" if value is None else type(value).__name__
    if is_list(value):
        kinds = {_type_of(item) for item in value}
        return f"list[{kinds.pop() if len(kinds) == 1 else 'Any'}]"
    return "dict[str, Any]"
