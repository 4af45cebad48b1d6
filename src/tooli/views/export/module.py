"""A generated module put together: what it is, imports, constants, functions, tools."""

from __future__ import annotations

from tooli.views.export.code import call, docstring, literal, wrapped

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tooli.views.export.order import Entry, Order
    from tooli.views.export.runner import Runner

ENVELOPE = """\
A tool answers with an envelope, as JSON: {"ok": true, "result": ...}, or {"ok": false, "error": \
{"code": ..., "message": ..., "suggestion": ...}}. No error ends the agent's run."""


def module(
    head: str,
    standard: Iterable[str],
    others: Iterable[str],
    own: str | None,
    constants: str,
    functions: Iterable[str],
    values: Iterable[str],
) -> str:
    """The text of a module. `standard`: names of the standard library's modules, or from-lines."""
    plain = sorted([f"import {name}" for name in standard if " " not in name])
    named = sorted([name for name in standard if " " in name])
    blocks = ["from __future__ import annotations", "\n".join([*plain, *named])]
    blocks += ["\n".join(sorted(others))] if others else []
    blocks += [own] if own else []
    first = "\n\n".join([docstring(head), *[block for block in (*blocks, constants) if block]])
    return "\n\n\n".join([*filter(None, [first, *functions, "\n\n".join(values)])]) + "\n"


def heading(order: Order, what: str, use: str, note: str = "") -> str:
    """What a generated module says about itself."""
    parts = [f"{order.title} {what}.", use.strip("\n")]
    parts += [wrapped(note)] if note else []
    return "\n\n".join([*parts, f"Made by tooli. To make it again:\n\n    {order.again}"])


def imports_of(runner: Runner, *more: str) -> list[str]:
    """The standard library's modules that a module with this runner needs."""
    return [*dict.fromkeys([*runner.imports, *more]), "from typing import Any"]


def made(order: Order, entry: Entry, maker: str = "make_tool", **more: Any) -> str:
    """The lines that make one tool."""
    said: dict[str, Any] = {**more}
    if entry.timeout is not None:
        said["timeout"] = entry.timeout
    if entry.flags:
        said["flags"] = entry.flags
    silent = order.in_process and entry.tool.prints
    value = call(
        maker,
        entry.name,
        target_of(order, entry),
        before=len(entry.variable) + 3,
        description=entry.description,
        schema=entry.schema,
        **said,
    )
    return f"{_SILENT if silent else ''}{entry.variable} = {value}"


_SILENT = "# It prints instead of returning: here that goes to stdout, and not to the model.\n"


def target_of(order: Order, entry: Entry) -> str | list[str]:
    """What `call` is told to run: a command's words, or a tool's name in its app."""
    return entry.tool.key if order.in_process else list(entry.tool.words)


def target_type(order: Order) -> tuple[str, str]:
    """The name and the type of that parameter."""
    return ("target", "str") if order.in_process else ("words", "list[str]")


def all_of(entries: Iterable[Entry], kind: str) -> str:
    """The list of a module's tools."""
    from tooli.views.export.code import Raw

    names = [Raw(entry.variable) for entry in entries]
    return f"TOOLS: list[{kind}] = {literal(names, before=len(kind) + 17)}"


def filled(template: str, values: Mapping[str, str]) -> str:
    """A template with its blanks filled in."""
    from string import Template

    return Template(template.strip("\n")).safe_substitute(values)


def blanks(order: Order, entries: Iterable[Entry]) -> dict[str, str]:
    """What the templates of `make_tool` leave open."""
    name, kind = target_type(order)
    flags = any([entry.flags for entry in entries])
    return {
        "target": name,
        "kind": kind,
        "flags": "\n    flags: tuple[str, ...] = ()," if flags else "",
        "given": ", flags" if flags else "",
    }
