"""How commands work together: what they read from a pipe and write to it, and typical sequences.

A pipe contract says what a command reads from stdin or writes to stdout. It is derived from the
types of the function; `pipe_input=` and `pipe_output=` replace it. A composition is a sequence of
command lines. Four kinds are inferred: pipes, a read-only command before a destructive one, pages,
and a dry run before the real call.
"""

from __future__ import annotations

from itertools import islice

from tooli.core import Record
from tooli.core.tool import ListOf, PathShape, unwrap_optional
from tooli.describe.calls import (
    command_title,
    format_command_line,
    sample_arguments,
    shortest_argv,
    shortest_call,
    spell_flag,
)
from tooli.describe.schema_text import object_properties, required_properties
from tooli.inputs.formats import content_schema, iterator_item_type, wants_file
from tooli.inputs.source import SourceShape
from tooli.schema.json_schema import output_schema
from tooli.schema.notation import format_type
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param, Tool

MAX_COMPOSITIONS = 3  # of each kind


class PipeContract(Record):
    """What a command reads from stdin or writes to stdout."""

    format: str  # jsonl, json, csv or text
    schema: Mapping[str, Any] = {}  # of one record, or of the object
    description: str = ""
    is_declared: bool = False  # by the author

    def to_dict(self) -> JsonObject:
        """Return the contract as JSON, without empty parts."""
        schema = dict(self.schema)
        parts = {"format": self.format, "description": self.description, "schema": schema}
        return {name: part for name, part in parts.items() if part}


class Composition(Record):
    """Command lines that belong together."""

    kind: str  # pipe, read-then-change, pages or dry-run
    why: str
    commands: tuple[str, ...]
    lines: tuple[str, ...]

    def to_dict(self) -> JsonObject:
        """Return the composition as JSON."""
        return {
            "kind": self.kind,
            "why": self.why,
            "commands": list(self.commands),
            "lines": list(self.lines),
        }


# ------------------------------------------------------------------ contracts


def pipe_output(tool: Tool) -> PipeContract | None:
    """Return what a command writes to a pipe; None if it declares no result."""
    if tool.guidance.pipe_output is not None:
        return _declared_contract(tool.guidance.pipe_output)
    schema = output_schema(tool)
    if schema is None:
        return None
    if schema.get("type") == "array":
        return PipeContract("jsonl", _item_schema(schema))
    return PipeContract("json" if object_properties(schema) else "text", schema)


def pipe_input(tool: Tool) -> PipeContract | None:
    """Return what a command reads from a pipe; None if it reads nothing."""
    if tool.guidance.pipe_input is not None:
        return _declared_contract(tool.guidance.pipe_input)
    for param in tool.command_params:
        shape = unwrap_optional(param.shape)
        if isinstance(shape, SourceShape):
            return _source_contract(shape)
    return None


def _declared_contract(declared: str | Mapping[str, object]) -> PipeContract:
    if isinstance(declared, str):
        return PipeContract(declared, is_declared=True)
    schema = declared.get("schema")
    return PipeContract(
        str(declared.get("format", "jsonl")),
        dict(schema) if is_object(schema) else {},
        str(declared.get("description", "")),
        is_declared=True,
    )


def _source_contract(shape: SourceShape) -> PipeContract:
    annotation = shape.annotation
    item = iterator_item_type(annotation)
    if wants_file(annotation) or annotation in (str, bytes) or item in (str, bytes):
        return PipeContract("text")
    schema = content_schema(annotation)
    if schema.get("type") == "array":
        return PipeContract("jsonl", _item_schema(schema))
    return PipeContract("json", schema)


def _item_schema(schema: JsonObject) -> JsonObject:
    """Return the schema of the items of an array, with the definitions that it refers to."""
    item = schema.get("items")
    if not is_object(item):
        return {}
    definitions = schema.get("$defs")
    return {**item, "$defs": definitions} if definitions else dict(item)


def can_pipe(source: PipeContract, target: PipeContract) -> bool:
    """True if what one command writes certainly fits what the other one reads."""
    if source.format != target.format and not (
        source.format in ("json", "jsonl") and target.format in ("json", "jsonl")
    ):
        return False
    if source.format == "jsonl" and target.format == "json":
        return False  # many records where one object is expected
    if source.is_declared and target.is_declared and not (source.schema and target.schema):
        return True
    found, wanted = object_properties({**source.schema}), object_properties({**target.schema})
    required = required_properties({**target.schema}) or list(wanted)
    return bool(required) and all(
        name in found and format_type(found[name]) == format_type(wanted[name])
        for name in required
        if name in wanted
    )


# ------------------------------------------------------------------ compositions


def infer_compositions(program: str, tools: Sequence[Tool]) -> list[Composition]:
    """Return the compositions of an app's tools, a few of each kind."""
    found: list[Composition] = []
    for find in (_find_pipes, _find_changes, _find_pages, _find_dry_runs):
        found += islice(find(program, tools), MAX_COMPOSITIONS)
    return found


def _find_pipes(program: str, tools: Sequence[Tool]) -> Iterator[Composition]:
    readers = [(tool, read) for tool in tools if (read := pipe_input(tool)) is not None]
    for source in tools:
        if source.behavior.destructive or source.guard.may_need_approval:
            continue
        written = pipe_output(source)
        if written is None:
            continue
        lines = [
            (target, _pipe_line(program, source, target, written.format))
            for target, read in readers
            if target is not source and can_pipe(written, read)
        ]
        lines += _xargs_lines(program, source, tools)
        for target, line in lines:
            names = (command_title(source), command_title(target))
            yield Composition("pipe", f"{names[1]} takes the result of {names[0]}", names, (line,))


def _pipe_line(program: str, source: Tool, target: Tool, written_format: str) -> str:
    """Return a pipe from the result of one command to the input of another."""
    flag = "--jsonl" if written_format == "jsonl" else "--json"
    flags = ("--dry-run", "--json") if target.behavior.destructive else ("--json",)
    first = format_command_line(program, source, shortest_argv(source), flag)
    return f"{first} | {format_command_line(program, target, _piped_argv(target), *flags)}"


def _piped_argv(tool: Tool) -> list[str]:
    """Return sample arguments, with `-` for the parameter that reads stdin."""
    is_read = [
        isinstance(unwrap_optional(param.shape), SourceShape) for param in tool.command_params
    ]
    source = tool.command_params[is_read.index(True)] if any(is_read) else None
    return sample_arguments(tool, {source.name: "-"} if source is not None else {})


def _xargs_lines(program: str, source: Tool, tools: Sequence[Tool]) -> Iterator[tuple[Tool, str]]:
    """Yield the tools whose arguments are in a result: handoffs, or read-only tools if none."""
    named = [handoff.command for handoff in source.guidance.handoffs]
    for target in tools:
        if target.key in named or (not named and target.behavior.read_only):
            line = None if target is source else _xargs_line(program, source, target)
            if line is not None:
                yield target, line


def _xargs_line(program: str, source: Tool, target: Tool) -> str | None:
    """Return a pipe from a field of one result to a command with a variadic argument, or None."""
    positionals = [param for param in target.command_params if param.kind == "argument"]
    if len(positionals) != 1 or not positionals[0].is_multiple:
        return None
    field = _matching_field(positionals[0], object_properties(output_schema(source) or {}))
    if field is None:
        return None
    select = f".{field}" if source.is_streaming else f".result[].{field}"
    first = shortest_call(program, source)
    flags = ("--dry-run", "--json") if target.behavior.destructive else ("--json",)
    last = format_command_line(program, target, (), *flags)
    return f"{first} | jq -r '{select}' | tr '\\n' '\\0' | xargs -0 {last}"


def _matching_field(param: Param, fields: JsonObject) -> str | None:
    """Return the field of a result that can be passed as a parameter, or None.

    It has the name of the parameter, or is `path` or `file` if the parameter takes paths.
    """
    names: Sequence[str] = [param.name, param.name.removesuffix("s")]
    shape = unwrap_optional(param.shape)
    if isinstance(shape.item if isinstance(shape, ListOf) else shape, PathShape):
        names = [*names, "path", "file"]
    for name in names:
        if name in fields and format_type(fields[name]) == "str":
            return name
    return None


def _find_changes(program: str, tools: Sequence[Tool]) -> Iterator[Composition]:
    """Yield a read-only command whose records name what a destructive command takes."""
    for target in tools:
        if not target.behavior.destructive:
            continue
        required = [param for param in target.command_params if param.required]
        for source in tools:
            if not source.behavior.read_only or source.path[:-1] != target.path[:-1]:
                continue
            fields = object_properties(output_schema(source) or {})
            field = _matching_field(required[0], fields) if required else None
            if field is not None:
                names = (command_title(source), command_title(target))
                why = f"{names[0]} returns {field}, which {names[1]} takes"
                first = shortest_call(program, source)
                yield Composition(
                    "read-then-change", why, names, (first, shortest_call(program, target))
                )
                break


def _find_pages(program: str, tools: Sequence[Tool]) -> Iterator[Composition]:
    for tool in tools:
        if tool.limits.paginated:
            name = command_title(tool)
            argv = shortest_argv(tool)
            first = format_command_line(program, tool, argv, "--json")
            following = format_command_line(program, tool, argv, "--cursor", "CURSOR", "--json")
            why = f"{name} returns pages; the next one needs meta.page.next_cursor"
            yield Composition("pages", why, (name,), (first, following))


def _find_dry_runs(program: str, tools: Sequence[Tool]) -> Iterator[Composition]:
    for tool in tools:
        if not tool.behavior.destructive:
            continue
        name = command_title(tool)
        argv = [word for word in shortest_argv(tool) if word != spell_flag(tool, "--yes")]
        first = format_command_line(program, tool, argv, "--dry-run", "--json")
        confirm = () if tool.guard.needs_human else ("--yes",)
        last = format_command_line(program, tool, argv, "--apply", "TOKEN", *confirm, "--json")
        why = f"the dry run of {name} shows its effects; --apply runs exactly that plan"
        yield Composition("dry-run", why, (name,), (first, last))
