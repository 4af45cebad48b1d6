"""Typed Python functions: one for each tool, for programs that are not agents."""

from __future__ import annotations

import sys

from tooli.contract.jsonable import is_list, is_object
from tooli.contract.reading import returns_of
from tooli.contract.schema import output_schema
from tooli.contract.tool import MISSING
from tooli.views.export import code
from tooli.views.export.annotations import Types
from tooli.views.export.code import Raw, camel, identifier
from tooli.views.export.module import filled, heading, imports_of, module, target_of
from tooli.views.export.order import RESERVED, entries
from tooli.views.export.runner import runner

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.views.export.order import Entry, Order


_LONGEST = 60
"""Longer defaults are not written out: the command knows them."""


def render(order: Order) -> dict[str, str]:
    """The module `NAME_api.py`."""
    tools = entries(order)
    types = Types(RESERVED)
    functions = [_function(order, entry, types) for entry in tools]
    own = [_GIVEN.strip()] if any(["**given(" in function for function in functions]) else []
    use = f"    from {order.base}_api import {tools[0].variable}" if tools else ""
    running = runner(order, tools, waits=False)
    if order.in_process:
        standard: list[str] = []
        constants = ""
        note = "The errors are tooli's own: tooli.ToolError and those below it."
    else:
        standard = [name for name in imports_of(running) if "typing" not in name]
        constants = running.constants
        flags = any([entry.flags for entry in tools])
        own += [*running.functions, _ERROR.strip(), filled(_RUN, _run_blanks(flags))]
        note = "What a command refuses or fails with is raised: a CommandError, with its code."
    source = module(
        heading(order, "as Python functions", use, note),
        [*standard, *_typing(types, [*types.classes, *own, *functions])],
        [],
        running.app,
        constants,
        [*types.classes, *own, *functions],
        [],
    )
    return {f"{order.base}_api.py": source}


def _typing(types: Types, written: list[str]) -> list[str]:
    """What the annotations of a module are made of."""
    if any(["Any" in part for part in written]):
        types.used.add("Any")
    homes = {"Path": "pathlib", "Sequence": "collections.abc"}
    lines = [f"from {homes[name]} import {name}" for name in types.used & homes.keys()]
    names = sorted(types.used - homes.keys())
    return [*lines, f"from typing import {', '.join(names)}"] if names else lines


def _run_blanks(flags: bool) -> dict[str, str]:
    return {
        "flags": "\n    flags: tuple[str, ...] = ()," if flags else "",
        "given": ", flags" if flags else "",
    }


# ------------------------------------------------------------------ one function


class _Parameter:
    """One parameter of a wrapper: how it is written, and what is passed on of it."""

    def __init__(self, entry: Entry, name: str, types: Types, used: set[str]) -> None:
        schema = entry.schema["properties"][name]
        param = entry.tool.param(name)
        hint = _class_name(param.annotation) if param is not None else None
        kind = types.given(schema, hint or camel(entry.variable, name))
        self.name = name
        self.variable = identifier(name, used)
        used.add(self.variable)
        self.required = name in entry.schema.get("required", ())
        self.about = schema.get("description")
        value = schema.get("default")
        fixed = "default" in schema and not is_list(value) and not is_object(value)
        fixed = fixed and len(str(value)) <= _LONGEST
        self.dropped = not self.required and not fixed  # None stands for: not given
        if self.dropped and "None" not in kind.split(" | ") and kind != "Any":
            kind += " | None"
        self.written = f"{self.variable}: {kind}"
        if not self.required:
            self.written += f" = {code.literal(None if self.dropped else value)}"


def _function(order: Order, entry: Entry, types: Types) -> str:
    used = {"app", "run", "given"}
    names = [name for name in entry.schema.get("properties", {}) if name not in _left_out(entry)]
    found = [_Parameter(entry, name, types, used) for name in names]
    found.sort(key=lambda parameter: not parameter.required)
    head = code.signature(
        entry.variable, [parameter.written for parameter in found], _result(order, entry, types)
    )
    body = _in_process(entry, found) if order.in_process else _as_program(order, entry, found)
    return f"{head}\n{code.docstring(_about(entry, found), '    ')}\n    return {body}"


def _left_out(entry: Entry) -> set[str]:
    """What only models need: a plan instead of a result, which would be of another type."""
    return {"dry_run"}.intersection(entry.flags)


def _about(entry: Entry, parameters: list[_Parameter]) -> str:
    """The docstring: what the tool does, and what is known of its parameters."""
    lines = [code.wrapped(entry.description, width=code.WIDTH - 4)]
    known = [parameter for parameter in parameters if parameter.about]
    if known:
        lines += ["", "Args:"]
    for parameter in known:
        text = f"{parameter.variable}: {parameter.about}"
        first, *rest = code.wrapped(text, width=code.WIDTH - 12).split("\n")
        lines += [f"    {first}", *[f"        {line}" if line else "" for line in rest]]
    return "\n".join(lines)


def _as_program(order: Order, entry: Entry, parameters: list[_Parameter]) -> str:
    said: dict[Any, Any] = {p.name: Raw(p.variable) for p in parameters if not p.dropped}
    given = _given(parameters)
    rest: dict[str, Any] = {"timeout": entry.timeout} if entry.timeout is not None else {}
    flags = tuple([flag for flag in entry.flags if flag not in _left_out(entry)])
    if flags:
        rest["flags"] = flags
    if given:
        said[Raw(given)] = None
    return code.call("run", target_of(order, entry), said, depth=1, before=7, **rest)


def _in_process(entry: Entry, parameters: list[_Parameter]) -> str:
    plain = {p.name: Raw(p.variable) for p in parameters if not p.dropped}
    odd = {name: plain.pop(name) for name in list(plain) if name != identifier(name)}
    more = [f"**{code.literal(odd, depth=-1000)}"] if odd else []
    more += [given] if (given := _given(parameters)) else []
    named = [Raw(f"{name}={value}") for name, value in plain.items()]
    words = [entry.tool.key, *named, *map(Raw, more)]
    return code.call("app.call", *words, depth=1, before=16) + ".unwrap()"


def _given(parameters: list[_Parameter]) -> str:
    """The arguments that are passed on only where they are given."""
    dropped = [p for p in parameters if p.dropped]
    plain = [f"{p.name}={p.variable}" for p in dropped if p.name == identifier(p.name)]
    odd = [f"{code.text(p.name)}: {p.variable}" for p in dropped if p.name != identifier(p.name)]
    words = [*plain, *(["**{" + ", ".join(odd) + "}"] if odd else [])]
    return f"**given({', '.join(words)})" if words else ""


# ------------------------------------------------------------------ results


def _result(order: Order, entry: Entry, types: Types) -> str:
    """The type of a result: JSON's, or in the same process what the function itself gives."""
    try:
        annotation = returns_of(entry.tool)
    except Exception:  # it names what only type checkers see
        return "Any"
    if annotation in (None, type(None)):
        return "None" if order.in_process else "Any"  # a program's printed text is its result
    if annotation is MISSING or (order.in_process and not _is_native(annotation)):
        return "Any"
    name = _class_name(annotation) or camel(entry.variable, "result")
    return types.returned(output_schema(entry.tool), name)


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


_GIVEN = '''
def given(**arguments: Any) -> dict[str, Any]:
    """Those that are not None: what is left out, the command decides itself."""
    return {name: value for name, value in arguments.items() if value is not None}
'''

_ERROR = '''
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

_RUN = '''
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
