"""Compile a JSON plan to a script, so that there is one way to run both.

    {"steps": [{"call": "find_files", "with": {"pattern": "*.py"}, "as": "files"},
               {"call": "checksum", "with": {"files": ["$item.path"]}, "for_each": "$files"}],
     "result": {"count": "$files"}}

A text that starts with `$` refers to the result of a step, to an input, or to `$item`, the current
item of `for_each`: `$files.0.path`. `$$` at the start stands for a `$`.
"""

from __future__ import annotations

import ast
import re
from json import loads
from keyword import iskeyword

from tooli.errors import InputError, Suggestion
from tooli.export.python_source import SourceText, value_literal
from tooli.orchestrate.script_tools import MODULES
from tooli.similar_names import did_you_mean
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tooli.core.protocols import JsonObject
    from tooli.errors import ToolError
    from tooli.orchestrate.script_tools import ScriptTool

_PLAN_FIELDS = ("steps", "result")
_STEP_FIELDS = ("call", "with", "for_each", "as")
_REFERENCE = re.compile(r"\$([A-Za-z_]\w*)((?:\.[\w-]+)*)")
_PLAN_WORDS = ("steps", "step", "call")
"""Keys that show that a text is meant as a plan."""
_PLAN_KEY = re.compile(r'"(?:steps?|call)"\s*:')
_MAX_STEPS = 1000
_MAX_DEPTH = 50


def read_plan(source: str) -> Mapping[str, object] | None:
    """Return the plan if a source text is one; None for a script, which may begin with a brace.

    Raises an InputError for a text that is meant as a plan, and is not an object in JSON.
    """
    if source.lstrip()[:1] not in ("{", "["):
        return None
    try:
        document: object = loads(source)
    except (ValueError, RecursionError) as error:
        if not _is_meant_as_plan(source):
            return None
        raise _plan_error(f"it is not valid JSON: {error}") from None
    if is_object(document) and any([name in document for name in _PLAN_WORDS]):
        return document
    if is_list(document) and _is_meant_as_plan(source):
        raise _plan_error('a plan is an object: {"steps": [{"call": …}]}')
    return None


def _is_meant_as_plan(source: str) -> bool:
    """True if a text is one literal with a key of plans, or seems to be one with an error in it."""
    try:
        body = ast.parse(source.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _PLAN_KEY.search(source) is not None
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        return False
    nodes = [*ast.walk(body[0].value)]
    if any([isinstance(node, (ast.Await, ast.Call, ast.comprehension)) for node in nodes]):
        return False
    keys = [key for node in nodes if isinstance(node, ast.Dict) for key in node.keys]
    return any([isinstance(key, ast.Constant) and key.value in _PLAN_WORDS for key in keys])


def compile_plan(
    plan: Mapping[str, object], tools: Mapping[str, ScriptTool], inputs: Mapping[str, object]
) -> str:
    """Return the script of a plan: one line for each step, and one for the result.

    Raises an InputError that names the step if the plan is not valid.
    """
    return _PlanCompiler(tools, inputs).compile(plan)


class _PlanCompiler:
    def __init__(self, tools: Mapping[str, ScriptTool], inputs: Mapping[str, object]) -> None:
        self._names = {tool.tool.key.replace("-", "_"): name for name, tool in tools.items()}
        self._names |= {name: name for name in tools}
        self._tools = tools
        self._variables = [*inputs]

    def compile(self, plan: Mapping[str, object]) -> str:
        _check_fields(plan, _PLAN_FIELDS, "the plan")
        steps = plan.get("steps")
        if not is_list(steps) or not steps or len(steps) > _MAX_STEPS:
            raise _plan_error(f"`steps` must be a list of 1 to {_MAX_STEPS} steps", "steps")
        lines = [self._compile_step(i, step) for i, step in enumerate(steps)]
        if "result" in plan:
            lines.append(f"return {self._source(plan['result'], 'result', False)}")
        else:
            lines.append(f"return {self._variables[-1]}")
        return "import asyncio\n" + "\n".join(lines) + "\n"

    def _compile_step(self, number: int, step: object) -> str:
        place = f"steps.{number}"
        if not is_object(step):
            raise _plan_error("a step must be an object", place)
        _check_fields(step, _STEP_FIELDS, place)
        called = step.get("call")
        name = self._names.get(called.replace("-", "_")) if isinstance(called, str) else None
        if name is None:
            hint = did_you_mean(called, self._names)
            raise _plan_error(f"there is no tool {str(called)[:80]!r}{hint}", f"{place}.call")
        is_repeated = "for_each" in step
        values = step.get("with", {})
        if not is_object(values):
            raise _plan_error("`with` must be an object", f"{place}.with")
        call = f"{name}({self._arguments(name, values, f'{place}.with', is_repeated)})"
        if is_repeated:
            items = self._source(step["for_each"], f"{place}.for_each", False)
            call = f"list(await asyncio.gather(*[{call} for item_ in {items}]))"
        else:
            call = f"await {call}"
        variable = self._variable(step.get("as", f"step{number + 1}"), f"{place}.as")
        self._variables.append(variable)
        return f"{variable} = {call}"

    def _arguments(self, name: str, values: JsonObject, place: str, has_item: bool) -> str:
        parameters = self._tools[name].parameters
        by_key = {key: parameter for parameter, key in parameters.items()}
        parts: list[str] = []
        for key, value in values.items():
            parameter = by_key.get(str(key), str(key))
            if parameter not in parameters:
                hint = did_you_mean(parameter, parameters)
                text = f"{name} has no parameter {parameter[:80]!r}{hint}"
                raise _plan_error(text, f"{place}.{parameter[:80]}")
            parts.append(f"{parameter}={self._source(value, f'{place}.{key}', has_item)}")
        return ", ".join(parts)

    def _variable(self, name: object, place: str) -> str:
        if not isinstance(name, str) or not name.isidentifier() or iskeyword(name):
            raise _plan_error("`as` must be a name such as `files`", place)
        if name in (*self._tools, *self._variables, *MODULES, "item", "item_") or name[0] == "_":
            raise _plan_error(f"the name {name!r} is taken", place)
        return name

    def _source(self, value: object, place: str, has_item: bool) -> str:
        return value_literal(self._literal(value, place, has_item, 0), depth=-10_000)

    def _literal(self, value: object, place: str, has_item: bool, depth: int) -> object:
        """Return a JSON value in which references are source code."""
        if depth > _MAX_DEPTH:
            raise _plan_error(f"more than {_MAX_DEPTH} levels", place)
        if is_object(value):
            return {
                str(key): self._literal(item, f"{place}.{key}", has_item, depth + 1)
                for key, item in value.items()
            }
        if is_list(value):
            return [
                self._literal(item, f"{place}.{i}", has_item, depth + 1)
                for i, item in enumerate(value)
            ]
        if isinstance(value, str) and value[:1] == "$":
            return value[1:] if value[:2] == "$$" else self._reference(value, place, has_item)
        return value

    def _reference(self, text: str, place: str, has_item: bool) -> SourceText:
        found = _REFERENCE.fullmatch(text)
        known = [*self._variables, *(["item"] if has_item else [])]
        if found is None or found[1] not in known:
            name = text[1:].partition(".")[0]
            hint = did_you_mean(name, known) or f"; known are {', '.join(known) or 'none'}"
            raise _plan_error(f"{text[:80]!r} refers to no step or input{hint}", place)
        name = "item_" if found[1] == "item" else found[1]
        steps = found[2].split(".")[1:]
        keys = [f"[{int(step)}]" if step.isdecimal() else f"[{step!r}]" for step in steps]
        return SourceText(name + "".join(keys))


def _check_fields(fields: Mapping[str, object], known: tuple[str, ...], place: str) -> None:
    for name in fields:
        if name not in known:
            raise _plan_error(f"{place} has no field {str(name)[:80]!r}{did_you_mean(name, known)}")


def _plan_error(message: str, place: str = "steps") -> ToolError:
    return InputError(
        f"The plan is not valid: {message}.",
        code="E1070",
        field=place[:200],
        suggestion=Suggestion("retry_with_modified_input", "Correct the plan; nothing ran."),
    )
