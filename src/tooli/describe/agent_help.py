"""Render compact help for agents (`--help-agent`): one line per command, or one command in detail.

For speed, this module reads `Shape`s and annotations, and loads JSON Schema code only for
parameters that are objects. Its start-up time is benchmarked.
"""

from __future__ import annotations

import sys

from tooli.core.command_words import callback_options, command_words
from tooli.core.docstring import sanitize_doc_text
from tooli.core.secret_fields import documented_default
from tooli.core.tool import (
    MISSING,
    Choice,
    Handle,
    ListOf,
    ParsedText,
    PathShape,
    Scalar,
    Structured,
    TupleOf,
    is_structured,
    item_shape,
    unwrap_optional,
)
from tooli.errors import shell_quote
from tooli.schema import has_pydantic_metadata
from tooli.schema.notation import INPUT_FORMATS, format_input, without_null
from tooli.schema.tool_reader import infer_shape, return_annotation
from tooli.text.json_encoder import make_json_encoder
from tooli.text.jsonable import is_list, to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from tooli.config.app_settings import AppSettings
    from tooli.core import AppState
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param, Shape, Tool


def render_app_help(state: AppState, tools: Iterable[Tool]) -> str:
    """Return one line for each command: usage, result type, summary."""
    head = " ".join(filter(None, (state.name, state.version)))
    summary = _first_line(state.description)
    lines = [_single_line(f"{head}: {summary}" if summary else head)]
    shown = [tool for tool in tools if not tool.hidden]
    lines += _callback_lines(shown)
    lines += [render_tool_line(tool) for tool in shown]
    if state.permissions is not None:
        lines.append(f"permissions: at most {', '.join(state.permissions)}")
    lines += _notation_lines([param for tool in shown for param in tool.command_params])
    command = "" if state.has_one_command else " COMMAND"
    program = " ".join(map(shell_quote, state.launcher_words)) or state.name
    lines.append(
        f"call: {program}{command} … --json -> "
        '{"ok":true,"result":…} | {"ok":false,"error":{code,message,suggestion}}'
    )
    lines += _COMMON_OPTIONS
    if any([tool.is_streaming for tool in shown]):
        lines.append(_STREAM_OPTIONS)
    lines += _served_lines(state, program)
    return "\n".join(lines)


def _served_lines(state: AppState, program: str) -> Iterator[str]:
    """Yield lines about the resources and prompts. An app without any has not loaded the module."""
    if "tooli.providers.resources" not in sys.modules or state.app is None:
        return
    from tooli.describe.mcp_resources import prompt_usage, resource_uri

    uris = [resource_uri(entry) for entry in state.app.list_resources()]
    if uris:
        yield f"resources: {program} resources read URI; URIs: {', '.join(uris)}"
    prompts = [prompt_usage(entry) for entry in state.app.list_prompts()]
    if prompts:
        yield f"prompts: {program} prompts get {' | '.join(prompts)}"


_COMMON_OPTIONS = (
    "any command: --schema --help-agent --yes --dry-run (then --apply TOKEN: run that plan)",
    "records: --limit 20 --select name,size --filter 'size > 9 and name == \"a\"' (no sorting)",
)


_STREAM_OPTIONS = (
    "streams: --jsonl writes items as lines, --stream writes JSON events (items, progress, logs; "
    "last the envelope)"
)


def render_tool_line(tool: Tool) -> str:
    """Return one line for a command."""
    parts = [render_usage(tool)]
    result = _result_type_name(return_annotation(tool))
    if result:
        parts.append(f"-> {result}")
    summary = tool.doc.summary
    labels = [*tool.effects.labels(), *(["needs approval"] if tool.guard.needs_human else [])]
    labels += ["streams"] if tool.is_streaming else []
    behavior = ", ".join(labels)
    if summary or behavior:
        parts.append("|")
    if summary:
        parts.append(summary)
    if behavior:
        parts.append(f"({behavior})")
    return " ".join(map(_single_line, parts))


def _single_line(text: str) -> str:
    """Return the text on one line, without control characters."""
    if text.isprintable():
        return text
    return text[: len(text) - len(text.lstrip(" "))] + " ".join(sanitize_doc_text(text).split())


def render_usage(tool: Tool, *, only_required: bool = False) -> str:
    """Return a command with its parameters. Optional parameters are in brackets."""
    shown = [
        param
        for param in tool.command_params
        if param.required or not (param.hidden or only_required)
    ]
    return " ".join([*tool.cli_path, *map(_format_parameter, shown)])


def usage_of_callbacks(tools: Iterable[Tool]) -> dict[tuple[str, ...], str]:
    """Return the options of callbacks with their types, by the words that they follow."""
    return {
        path: " ".join([_format_parameter(param) for param in params])
        for path, params in callback_options(tools).items()
    }


def usage_of_settings(settings: AppSettings) -> tuple[str, list[str]]:
    """Return the flags of the settings object of the app with their types, and its variables."""
    flags = " ".join([_format_parameter(param) for param in settings.shown_params])
    return flags, [settings.variable(param) for param in settings.shown_params]


def render_settings_line(settings: AppSettings) -> str:
    """Return one line with the flags and the variables of the settings object of the app."""
    flags, variables = usage_of_settings(settings)
    return _single_line(f"settings: {flags}; variables: {', '.join(variables)}")


def _callback_lines(tools: Iterable[Tool]) -> list[str]:
    return [
        _single_line(f"options {place_of_options(path)}: {text}")
        for path, text in usage_of_callbacks(tools).items()
    ]


def place_of_options(path: tuple[str, ...]) -> str:
    """Return where the options of a callback are typed."""
    return f"after {' '.join(path)}" if path else "before the command"


def render_tool_help(tool: Tool) -> str:
    """Return the help of one command: parameters, examples, errors, restrictions."""
    lines = [render_tool_line(tool), *_callback_lines([tool])]
    for param in tool.command_params:
        text = parameter_text(tool, param)
        if text:
            lines.append(f"  {_display_name(param)}: {text}")
    if tool.guidance.when_to_use:
        lines.append(f"use when: {tool.guidance.when_to_use}")
    lines += _example_lines(tool)
    for code, meaning in tool.guidance.error_codes.items():
        lines.append(f"error {code}: {meaning}")
    lines += _constraint_lines(tool)
    for handoff in tool.guidance.handoffs:
        command = handoff.command.replace(".", " ")
        lines.append(f"next: {command}" + (f"  # {handoff.when}" if handoff.when else ""))
    return "\n".join([_single_line(line) for line in lines])


_TEXT_CONTENT = ("", "any", "{text:str}")
"""Content without structure. JSON passes a text as an object, because a str is a location."""


def parameter_text(tool: Tool, param: Param) -> str:
    """Return what to know about a parameter: its help, and how to pass its values."""
    text = _single_line(param.help or tool.doc.params.get(param.name) or "").rstrip()
    notes: list[str] = []
    shape = item_shape(param.shape)
    if isinstance(shape, Handle) and not shape.is_secret:
        accepted = shape.schema().get("anyOf", ())  # a location, or the content
        content = format_input(accepted[1]) if len(accepted) > 1 else ""
        notes += [f"It contains {content}."] if content not in _TEXT_CONTENT else []
    if param.is_multiple and param.kind == "option":
        notes.append("Repeat the flag for each value.")
    end = "" if not text or not notes or text[-1] in ".!?…:" else "."
    return " ".join(filter(None, [f"{text}{end}", *notes]))


def _notation_lines(params: list[Param]) -> list[str]:
    """Return a line that explains the notation of the parameters, if they need one."""
    shown = [param for param in params if param.required or not param.hidden]
    facts = {
        "[--x=…]... repeat the flag for each value": any(
            [param.is_multiple and param.kind == "option" for param in shown]
        ),
        "{a:int,b?:str} a JSON object, b is optional": any(
            [is_structured(param.shape) for param in shown]
        ),
    }
    found = [fact for fact, applies in facts.items() if applies]
    return [f"notation: {'; '.join(found)}"] if found else []


def _example_lines(tool: Tool) -> list[str]:
    """Return one line for each of the author's examples."""
    if not tool.guidance.examples:
        return []
    lines: list[str] = []
    for example in tool.guidance.examples:
        words = command_words(tool, [str(word) for word in example.get("args", ())])
        command = " ".join(map(shell_quote, [tool.app, *words]))
        description = example.get("description")
        lines.append(f"example: {command}" + (f"  # {description}" if description else ""))
    return lines


def _constraint_lines(tool: Tool) -> list[str]:
    """Return one line for each restriction and limit."""
    guard, limits = tool.guard, tool.limits
    facts = {
        "needs": "a human's approval" if guard.needs_human else "",
        "scopes": ", ".join(guard.scopes or ()),
        "capabilities": ", ".join(guard.capabilities),
        "permissions": "; ".join([", ".join(names) for names in guard.app_permissions]),
        "danger": guard.danger,
        "cost": limits.cost_hint,
        "timeout": f"{limits.timeout:g} s" if limits.timeout else "",
        "delegate": tool.guidance.delegation_hint,
        "deprecated": "yes" if tool.deprecated is True else tool.deprecated,
    }
    return [f"{name}: {value}" for name, value in facts.items() if value]


def _format_parameter(param: Param) -> str:
    """Return a parameter of a usage line: `<file:path>`, `[--tag=<str>]...`."""
    if param.is_flag:
        negation = "".join([f"/{flag}" for flag in param.negations[:1] if param.default is True])
        dots = "..." if param.option_kwargs.get("count") else ""
        if param.required:  # Typer asks for it
            return "|".join([_display_name(param), *param.negations[:1]])
        return f"[{_display_name(param)}{negation}]{dots}"
    notation = _value_notation(param)
    if param.kind == "argument":
        dots = "..." if param.is_multiple else ""
        text = f"{param.name}:{notation}{dots}"
        return f"<{text}>" if param.required else f"[{text}]"
    text = f"{_display_name(param)}{_format_value(param, notation)}"
    return f"{text if param.required else f'[{text}]'}{'...' if param.is_multiple else ''}"


def _format_value(param: Param, notation: str) -> str:
    """Return the value of an option: `=<int>`, `=3:int`, `={name:str}`, ` <x:str> <y:str>`."""
    default = documented_default(param)
    shape = unwrap_optional(param.shape)
    if isinstance(shape, TupleOf):  # each item is a word of its own
        names = list(map(type_name, shape.items))
        if is_list(default) and len(default) == len(names):
            words = zip(map(_default_text, default), names, strict=True)
            return "".join([f" <{word}:{name}>" for word, name in words])
        return "".join([f" <{name}>" for name in names])
    if notation[:1] in ("{", "["):
        return f"={notation}"
    text = format_default(param)
    is_empty_choice = isinstance(shape, Choice) and default is not None and default is not MISSING
    if any([c.isspace() for c in text]) or (is_empty_choice and not text):
        text = f'"{text}"'
    return f"={text}:{notation}" if text else f"=<{notation}>"


def _value_notation(param: Param) -> str:
    """Return the type of one value of a parameter, with its bounds."""
    shape = unwrap_optional(param.shape)
    item = item_shape(shape)
    if param.option_kwargs.keys() & {"parser", "click_type"}:
        return type_name(item)
    is_annotated = hasattr(param.annotation, "__metadata__") or hasattr(
        getattr(item, "annotation", None), "__metadata__"
    )
    if isinstance(item, Structured) or (is_annotated and isinstance(item, (Scalar, ParsedText))):
        return _schema_notation(param, is_list=isinstance(shape, ListOf)) or type_name(item)
    return f"{type_name(item)}{format_bounds(param)}"


def _schema_notation(param: Param, *, is_list: bool) -> str:
    """Return the type of one value as its JSON Schema describes it; "" if that says nothing."""
    from tooli.schema.json_schema import param_schema

    schema = param_schema(param)
    definitions: JsonObject = schema.get("$defs", {})
    schema = without_null(schema)
    item: JsonObject = schema.get("items", {}) if is_list else schema
    text = format_input({**item, "$defs": definitions})
    return {"any": "", "object": "{…}"}.get(text, text)


def format_bounds(param: Param) -> str:
    """Return the bounds of a number, such as `(1..100)`; "" if it has none."""
    low, high = param.option_kwargs.get("min"), param.option_kwargs.get("max")
    if has_pydantic_metadata(param):
        from tooli.schema.json_schema import param_schema

        bounds = without_null(param_schema(param))
        low, high = bounds.get("minimum", low), bounds.get("maximum", high)
    if low is None and high is None:
        return ""
    return f"({'' if low is None else low}..{'' if high is None else high})"


def _display_name(param: Param) -> str:
    return max(param.flags, key=len) if param.flags else param.name


def type_name(shape: Shape) -> str:
    """Return a short name of a parameter's type, such as `int`, `path` or `a|b`."""
    shape = unwrap_optional(shape)
    match shape:
        case Scalar(kind):
            return kind.__name__
        case PathShape():
            return "path"
        case Choice():
            return "|".join(map(_choice_label, shape.labels))
        case ListOf(item):
            return f"{type_name(item)}..."
        case TupleOf(items):
            return " ".join(type_name(item) for item in items)
        case Structured():
            return "json"
        case Handle():
            return shape.metavar.lower()
        case _:
            return _annotation_name(getattr(shape, "annotation", None))


def _choice_label(label: str) -> str:
    """Return a value of a choice. It is quoted if it is empty or could be read as several."""
    is_plain = label and "|" not in label and not any([c.isspace() for c in label])
    return label if is_plain else f'"{label}"'


def _annotation_name(annotation: Any) -> str:
    """Return a short name of a type that is not plain: `date(YYYY-MM-DD)`, `int|str`."""
    members = _union_members(annotation)
    if members:
        shapes = [infer_shape(member) for member in members if member is not type(None)]
        return "|".join(dict.fromkeys(map(type_name, shapes)))
    if hasattr(annotation, "__metadata__"):
        return type_name(infer_shape(annotation.__origin__))
    name = str(getattr(annotation, "__name__", "value")).lower()
    return INPUT_FORMATS.get(name, name)


def _union_members(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union; () if the annotation is not a union."""
    origin = getattr(annotation, "__origin__", None)
    is_union = type(annotation).__name__ == "UnionType" or str(origin) == "typing.Union"
    return annotation.__args__ if is_union else ()


def format_default(param: Param) -> str:
    """Return the default as text; "" if there is none or it is empty."""
    default = documented_default(param)
    return "" if default is MISSING or default is None else _default_text(default)


def _default_text(default: Any) -> str:
    """Return a default as it is typed. A list is JSON. An empty default is ""."""
    value = getattr(default, "value", default)  # of an Enum
    if isinstance(value, (str, int, float)):
        return str(value)
    value = to_jsonable(value, [])
    if isinstance(value, str):
        return value
    if isinstance(default, (set, frozenset)):  # in an order that does not change
        value = sorted(value, key=str)
    return make_json_encoder([])(value) if value else ""


def _result_type_name(annotation: Any) -> str:
    if annotation is MISSING or annotation is None:
        return ""
    fields = getattr(annotation, "__annotations__", None)
    if isinstance(annotation, type) and annotation.__module__ != "builtins" and fields:
        return "{" + ",".join(fields) + "}"
    members = _union_members(annotation)
    if members:
        names = [_result_type_name(part) for part in members if part is not type(None)]
        return "|".join(dict.fromkeys([*names, *(["null"] if type(None) in members else [])]))
    arguments = getattr(annotation, "__args__", ())
    name = getattr(getattr(annotation, "__origin__", annotation), "__name__", str(annotation))
    if name in _LIST_NAMES and arguments:
        return f"[{_result_type_name(arguments[0])}]"
    if name == "tuple" and arguments:
        items = [_result_type_name(part) for part in arguments if part is not ...]
        return f"[{','.join(items)}]"
    if name == "dict" and len(arguments) == 2:
        return f"{{str:{_result_type_name(arguments[1])}}}"
    if name == "Literal":
        return "|".join(map(_choice_label, map(str, arguments)))
    return name


_LIST_NAMES = (
    *("list", "set", "frozenset", "Sequence", "Iterable"),
    *("Iterator", "Generator", "AsyncIterator", "AsyncGenerator"),
)


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]
