"""Check bound arguments beyond their types: text from agents, and the use of stdin and stdout.

Text from an agent must not contain control characters: terminals, logs and file systems act on
them. `Within` and `Identifier` restrict a parameter for every caller. `Verbatim` turns the check
for control characters off.
"""

from __future__ import annotations

import sys

from tooli.core.call import Problem
from tooli.inputs.constraints import Verbatim, find_control_character

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tooli.core.call import Call

_MAX_DEPTH = 50
_TYPES_WITHOUT_TEXT = frozenset((int, float, bool, type(None)))


def check_arguments(call: Call, bound: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems with the bound arguments of a call."""
    if call.caller.maybe_agent:
        yield from _check_agent_values(call, bound)
    if call.tool.has_handles:
        yield from _check_streams(call, bound)


# ------------------------------------------------------------------ text from agents


def _check_agent_values(call: Call, bound: Mapping[str, Any]) -> Iterator[Problem]:
    for param in call.tool.params:
        name = param.name
        if name not in bound or name not in call.arguments:
            continue
        value = bound[name]
        kind = value.__class__
        if kind in _TYPES_WITHOUT_TEXT or (kind is str and value.isprintable()):
            continue
        if param.kind == "injected" or Verbatim in param.constraints:
            continue
        for path, text in _iterate_texts(value, (), 0):
            character = find_control_character(text)
            if character:
                field = ".".join([name, *map(str, path)])
                message = f"{field!r}: contains the control character {character}: remove it"
                yield Problem("E1030", field, message)


def _iterate_texts(
    value: Any, path: tuple[Any, ...], depth: int
) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Yield every text inside a value that is not printable, with its path."""
    if isinstance(value, str):
        if not value.isprintable():
            yield path, value
    elif depth > _MAX_DEPTH or isinstance(value, (int, float, bytes, type(None))):
        return
    elif isinstance(value, dict):
        items: Any = value.items()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        for key, item in items:
            yield from _iterate_texts(key, path, depth + 1)
            yield from _iterate_texts(
                item, (*path, key if str(key).isprintable() else "?"), depth + 1
            )
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts: Any = value  # pyright: ignore[reportUnknownVariableType]
        for i, item in enumerate(parts):
            yield from _iterate_texts(item, (*path, i), depth + 1)
    elif hasattr(value, "__fspath__"):
        yield from _iterate_texts(value.__fspath__(), path, depth)
    elif hasattr(value, "tooli_location"):
        yield from _iterate_texts(value.tooli_location, path, depth)
    elif not hasattr(value, "tooli_json"):
        fields = getattr(value.__class__, "__dataclass_fields__", ())  # also for classes with slots
        attributes: Any = {name: getattr(value, name, None) for name in fields}
        yield from _iterate_texts(attributes or getattr(value, "__dict__", None), path, depth + 1)


# ------------------------------------------------------------------ stdin and stdout


def _check_streams(call: Call, bound: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem for each argument that names stdin or stdout but cannot use it.

    Also pass the option `nul` on to the inputs.
    """
    readers: list[str] = []
    for name, value in bound.items():
        for item in value if isinstance(value, (list, tuple, set, frozenset)) else (value,):  # pyright: ignore[reportUnknownVariableType]
            if getattr(item, "is_stdin", False):  # pyright: ignore[reportUnknownArgumentType]
                readers.append(name)
                yield from _check_stdin(call, name)
            elif getattr(item, "is_stdout", False):  # pyright: ignore[reportUnknownArgumentType]
                yield from _check_stdout(call, name)
            if call.options.nul and hasattr(item, "nul"):  # pyright: ignore[reportUnknownArgumentType]
                item.nul = True  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
    if len(readers) > 1:
        message = f"stdin can be read only once, and {readers[0]!r} reads it"
        yield Problem("E1035", readers[-1], f"{readers[-1]!r}: {message}")


def _check_stdin(call: Call, name: str) -> Iterator[Problem]:
    stdin: Any = sys.stdin
    if call.caller.is_remote:
        message = "stdin is not available here: give a path, a URL, or the content"
    elif call.options.stdin_consumed:
        message = "stdin can be read only once, and an option reads it"
    elif stdin is None:
        message = "stdin is closed"
    elif call.options.no_input and stdin.isatty():
        message = "stdin is a terminal, which --no-input does not read: give a path or a URL"
    else:
        return
    yield Problem("E1035", name, f"{name!r}: {message}")


def _check_stdout(call: Call, name: str) -> Iterator[Problem]:
    """Yield a problem if stdout is reserved for the answer of the call.

    A command whose printed text is its result may write to stdout.
    """
    if call.tool.returns_printed_text or call.options.dry_run:
        return
    if call.options.is_machine_mode or call.caller.is_remote:
        message = "stdout is reserved for the answer: name a file, or use --text"
        yield Problem("E1036", name, f"{name!r}: {message}")
