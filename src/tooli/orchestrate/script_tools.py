"""The tools that a script may call, as functions with names that Python allows."""

from __future__ import annotations

import builtins

from tooli.core import Record
from tooli.core.tool import MISSING
from tooli.describe.mcp_tools import tools_by_safe_name
from tooli.errors import InputError, Suggestion
from tooli.export.python_source import identifier
from tooli.schema.json_schema import input_schema
from tooli.similar_names import did_you_mean

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool

BARRIER = "tooli_start_"
"""The function that tooli calls before the first line of a script: until then nothing has run."""

STUBS_AT = "`orchestrate stubs`"
"""Where callers on a command line find the stubs."""
_STUBS_AT_BY_SURFACE = {"mcp": "search_tools", "http": "GET /orchestrate"}

MODULES = (
    *("asyncio", "base64", "bisect", "binascii", "collections", "copy", "csv", "dataclasses"),
    *("datetime", "decimal", "functools", "hashlib", "itertools", "json", "math", "os", "pathlib"),
    *("random", "re", "sys", "time", "tomllib", "typing", "unicodedata"),
)
"""The modules that a script can import."""

_TAKEN_NAMES = frozenset((*dir(builtins), *MODULES, BARRIER, "Any", "NotRequired", "TypedDict"))
"""Names that scripts use for something else. A tool of such a name gets an underscore."""


class ScriptTool(Record):
    """One tool as a function of a script."""

    name: str  # of the function
    tool: Tool
    schema: JsonObject  # of the arguments
    parameters: Mapping[str, str]  # names of the schema by names in the signature, in its order

    def read_arguments(
        self, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> dict[str, object]:
        """Return the arguments of a call by their names in the schema.

        Raises a TypeError, with the message that Python has for such a call.
        """
        names = list(self.parameters)
        if len(args) > len(names):
            raise TypeError(
                f"{self.name}() takes {len(names)} positional arguments but {len(args)} were given"
            )
        given = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in self.parameters:
                hint = did_you_mean(name, names)
                raise TypeError(f"{self.name}() got an unexpected keyword argument {name!r}{hint}")
            if name in given:
                raise TypeError(f"{self.name}() got multiple values for argument {name!r}")
            given[name] = value
        return {self.parameters[name]: value for name, value in given.items()}


def read_script_tools(tools: Iterable[Tool]) -> dict[str, ScriptTool]:
    """Return the tools that scripts may call, by the names of their functions."""
    found: dict[str, ScriptTool] = {}
    for safe_name, tool in tools_by_safe_name(tools).items():
        if tool.guard.callers and "code" not in tool.guard.callers:
            continue
        base = safe_name or tool.name
        if not base[:1].isalpha():  # stubs do not export a name that starts with an underscore
            base = f"tool_{base.lstrip('_')}"
        name = identifier(base, (*_TAKEN_NAMES, *found))
        schema = input_schema(tool)
        found[name] = ScriptTool(name, tool, schema, _signature_names(schema))
    return found


def _signature_names(schema: JsonObject) -> dict[str, str]:
    """Return the names of the schema's properties by valid ones, required parameters first."""
    required = schema.get("required", ())
    properties = schema.get("properties", {})
    ordered = sorted(properties, key=lambda name: name not in required)
    names: dict[str, str] = {}
    for name in ordered:
        names[identifier(name, names)] = name
    return names


def select_tools(
    tools: Mapping[str, ScriptTool],
    names: Collection[str] | None,
    *,
    read_only: bool,
    stubs_at: str = STUBS_AT,
) -> dict[str, ScriptTool]:
    """Return the tools with these names, or all of them; with `read_only`, those that only read.

    A name is that of the function or that of the command. Raises an InputError if one is unknown.
    """
    selected = dict(tools)
    if names is not None:
        by_name = {tool.tool.key.replace("-", "_"): name for name, tool in tools.items()}
        by_name |= {name: name for name in tools}
        selected = {}
        for given in names:
            name = by_name.get(given.replace("-", "_"))
            if name is None:
                raise InputError(
                    f"There is no tool {given[:80]!r}{did_you_mean(given, by_name)}",
                    code="E1001",
                    field="tools",
                    suggestion=Suggestion(
                        "retry_with_modified_input", f"{stubs_at} lists the tools."
                    ),
                )
            selected[name] = tools[name]
    if read_only:
        return {name: tool for name, tool in selected.items() if tool.tool.effects.read_only}
    return selected


def where_stubs_are(surface: str) -> str:
    """Return where the callers of an interface find the stubs."""
    return _STUBS_AT_BY_SURFACE.get(surface, STUBS_AT)


def is_required(tool: ScriptTool, name: str) -> bool:
    """True if a parameter of the signature has no default."""
    return tool.parameters[name] in tool.schema.get("required", ())


def default_of(tool: ScriptTool, name: str) -> object:
    """Return the default of a parameter of the signature, or MISSING if the schema has none."""
    return tool.schema["properties"][tool.parameters[name]].get("default", MISSING)
