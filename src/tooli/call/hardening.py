"""A second look at bound arguments: at what is made up by a model, and at who uses stdin.

Text that an agent sends is refused where it holds control characters, which nobody means and
terminals, logs and file systems obey. `Within` and `Identifier` say more about a parameter and
hold for everybody; `Verbatim` takes this look away.
"""

from __future__ import annotations

import sys

from tooli.call.model import Problem
from tooli.contract.fit import Misfit
from tooli.inputs.marks import Verbatim, control_character

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tooli.call.model import Call

_DEEPEST = 50
_SILENT = frozenset((int, float, bool, type(None)))


def look_closer(
    call: Call, bound: Mapping[str, Any], wrong: list[Problem] | None
) -> list[Problem] | None:
    """What is wrong with the arguments of a call beyond their types, added to what is known."""
    found: list[Problem] = []
    if call.caller.agent:
        found += _made_up(call, bound)
    if call.tool.handles:
        found += _streams(call, bound)
    return [*(wrong or ()), *found] if found else wrong


# ------------------------------------------------------------------ values made up by a model


def _made_up(call: Call, bound: Mapping[str, Any]) -> Iterator[Problem]:
    for param in call.tool.params:
        name = param.name
        if name not in bound or name not in call.arguments:
            continue
        value = bound[name]
        kind = value.__class__
        if kind in _SILENT or (kind is str and value.isprintable()):
            continue
        if param.kind == "injected" or Verbatim in param.marks:
            continue
        for at, text in _texts(value, (), 0):
            odd = control_character(text)
            if odd:
                from tooli.call.repair import problems_of

                said = f"there is a control character in it, {odd}: leave it out"
                yield from problems_of(param, Misfit(said, at, code="E1030"))


def _texts(value: Any, at: tuple[Any, ...], depth: int) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Every text inside a value, and where it is."""
    if isinstance(value, str):
        if not value.isprintable():
            yield at, value
    elif depth > _DEEPEST or isinstance(value, (int, float, bytes, type(None))):
        return
    elif isinstance(value, dict):
        items: Any = value.items()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        for key, item in items:
            yield from _texts(key, at, depth + 1)
            yield from _texts(item, (*at, key if str(key).isprintable() else "?"), depth + 1)
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts: Any = value  # pyright: ignore[reportUnknownVariableType]
        for i, item in enumerate(parts):
            yield from _texts(item, (*at, i), depth + 1)
    elif hasattr(value, "__fspath__"):
        yield from _texts(value.__fspath__(), at, depth)
    elif hasattr(value, "tooli_place"):
        yield from _texts(value.tooli_place, at, depth)
    elif not hasattr(value, "tooli_text"):
        fields = getattr(value.__class__, "__dataclass_fields__", ())  # they may be in slots
        own: Any = {name: getattr(value, name, None) for name in fields}
        yield from _texts(own or getattr(value, "__dict__", None), at, depth + 1)


# ------------------------------------------------------------------ stdin and stdout


def _streams(call: Call, bound: Mapping[str, Any]) -> Iterator[Problem]:
    """Whether stdin is there, and read once; whether stdout is free."""
    readers: list[str] = []
    for name, value in bound.items():
        for item in value if isinstance(value, (list, tuple, set, frozenset)) else (value,):  # pyright: ignore[reportUnknownVariableType]
            if getattr(item, "is_stdin", False):  # pyright: ignore[reportUnknownArgumentType]
                readers.append(name)
                yield from _reading(call, name)
            elif getattr(item, "is_stdout", False):  # pyright: ignore[reportUnknownArgumentType]
                yield from _writing(call, name)
            if call.options.nul and hasattr(item, "nul"):  # pyright: ignore[reportUnknownArgumentType]
                item.nul = True  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
    if len(readers) > 1:
        said = f"stdin can be read once, and {readers[0]!r} reads it already"
        yield Problem("E1035", readers[-1], f"{readers[-1]!r}: {said}")


def _reading(call: Call, name: str) -> Iterator[Problem]:
    surface = call.caller.surface
    stdin: Any = sys.stdin
    if surface in ("mcp", "http"):
        said = "there is no stdin here: give a path, a URL, or the content"
    elif call.options.stdin_taken:
        said = "stdin can be read once, and a flag reads it already"
    elif stdin is None:
        said = "stdin is closed"
    elif call.options.no_input and stdin.isatty():
        said = "stdin is a terminal, and --no-input waits for nobody: give a path or a URL"
    else:
        return
    yield Problem("E1035", name, f"{name!r}: {said}")


def _writing(call: Call, name: str) -> Iterator[Problem]:
    """A command that declares no result may print: what it writes is what it says."""
    if call.tool.prints or call.options.dry_run:
        return
    if call.options.machine or call.caller.surface in ("mcp", "http"):
        said = "stdout is for the answer here: name a file, or ask for --text"
        yield Problem("E1036", name, f"{name!r}: {said}")
