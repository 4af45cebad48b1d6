"""Arguments from elsewhere than the line.

`--input`: all of them as one JSON object: text, `@file`, or `-` for stdin.
`--null`: the values of the argument that takes many, on stdin, each ended by NUL, as
`find -print0` writes them.
"""

from __future__ import annotations

import sys

from tooli.core.call import Problem

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tooli.cli.main import Invocation


def add_external_arguments(
    invocation: Invocation, arguments: dict[str, Any], problems: Sequence[Problem]
) -> tuple[dict[str, Any], list[Problem]]:
    """The arguments of a line with those from elsewhere, and what is wrong with them."""
    options = invocation.line.options
    all_problems = list(problems)
    if "input" in options:
        payload, new_problems = read_payload(options["input"])
        arguments = {**_secrets_as_raw_text(invocation, options["input"], payload), **arguments}
        all_problems += new_problems
    if "null" in options:
        arguments, new_problems = _add_stdin_items(invocation, arguments)
        all_problems += new_problems
    return arguments, all_problems


def _secrets_as_raw_text(
    invocation: Invocation, source: str, payload: dict[str, Any]
) -> dict[str, Any]:
    """What is written on the line names secrets, and does not hold them, in JSON either."""
    from tooli.core.tool import Handle
    from tooli.schema.convert import RawText

    tool = invocation.line.tool
    if tool is None or not tool.has_handles or source == "-" or source[:1] == "@":
        return payload
    secret = {
        p.name for p in tool.public_params if isinstance(p.shape, Handle) and p.shape.is_secret
    }
    return {k: RawText([str(v)]) if k in secret else v for k, v in payload.items()}


def _add_stdin_items(
    invocation: Invocation, arguments: dict[str, Any]
) -> tuple[dict[str, Any], list[Problem]]:
    """The arguments with the items on stdin: behind those that were typed."""
    import os

    from tooli.schema.convert import RawText

    tool = invocation.line.tool
    params = tool.public_params if tool is not None else ()
    many = next((p for p in params if p.kind == "argument" and p.is_multiple), None)
    stdin: Any = sys.stdin
    if many is None:
        if tool is not None and tool.has_handles:
            return arguments, []  # the input itself is read so
        return arguments, [_null_problem("the command takes no list of values to read")]
    if invocation.line.options.get("input") == "-" or stdin is None:
        return arguments, [_null_problem("stdin is not there to be read")]
    if invocation.line.options.get("no_input") and stdin.isatty():
        return arguments, [_null_problem("stdin is a terminal, and --no-input waits for nobody")]
    if invocation.items is None:
        source = getattr(stdin, "buffer", None)
        try:
            data = source.read() if source is not None else stdin.read().encode()
        except (OSError, ValueError) as failure:
            return arguments, [_null_problem(f"stdin cannot be read: {failure}")]
        invocation.items = [os.fsdecode(item) for item in data.split(b"\0") if item]
    typed = arguments.get(many.name)
    texts = [*(typed.texts if isinstance(typed, RawText) else typed or ()), *invocation.items]
    if texts:
        arguments = {**arguments, many.name: RawText(texts, invocation.convert_with_typer)}
    return arguments, []


def _null_problem(reason: str) -> Problem:
    return Problem("E1007", "null", f"--null: {reason}")


def read_payload(source: str) -> tuple[dict[str, Any], list[Problem]]:
    """The arguments in a payload, and what is wrong with it."""
    import json

    try:
        if source == "-":
            if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
                return _payload_problem("cannot be read: stdin is closed")
            text = sys.stdin.read()
        elif source[:1] == "@":
            with open(source[1:], encoding="utf-8") as file:
                text = file.read()
        else:
            text = source
        payload = json.loads(text)
    except OSError as failure:
        return _payload_problem(f"cannot be read: {failure.strerror}")
    except (ValueError, RecursionError) as failure:
        return _payload_problem(f"is not valid JSON: {failure}")
    if not isinstance(payload, dict):
        return _payload_problem("is not a JSON object")
    return payload, []  # pyright: ignore[reportUnknownVariableType]


def _payload_problem(reason: str) -> tuple[dict[str, Any], list[Problem]]:
    return {}, [Problem("E1008", "input", f"--input {reason}")]
