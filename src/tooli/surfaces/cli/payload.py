"""Arguments from elsewhere than the line.

`--input`: all of them as one JSON object: text, `@file`, or `-` for stdin.
`--null`: the values of the argument that takes many, on stdin, each ended by NUL, as
`find -print0` writes them.
"""

from __future__ import annotations

import sys

from tooli.call.model import Problem

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tooli.surfaces.cli.main import Session


def complete(
    session: Session, arguments: dict[str, Any], problems: Sequence[Problem]
) -> tuple[dict[str, Any], list[Problem]]:
    """The arguments of a line with those from elsewhere, and what is wrong with them."""
    options = session.line.options
    found = list(problems)
    if "input" in options:
        given, wrong = read_payload(options["input"])
        arguments = {**_secrets_named(session, options["input"], given), **arguments}
        found += wrong
    if "null" in options:
        arguments, wrong = _with_items(session, arguments)
        found += wrong
    return arguments, found


def _secrets_named(session: Session, source: str, given: dict[str, Any]) -> dict[str, Any]:
    """What is written on the line names secrets, and does not hold them, in JSON either."""
    from tooli.contract.fit import Words
    from tooli.contract.tool import Handle

    tool = session.line.tool
    if tool is None or not tool.handles or source == "-" or source[:1] == "@":
        return given
    secret = {p.name for p in tool.public if isinstance(p.shape, Handle) and p.shape.secret}
    return {k: Words([str(v)]) if k in secret else v for k, v in given.items()}


def _with_items(
    session: Session, arguments: dict[str, Any]
) -> tuple[dict[str, Any], list[Problem]]:
    """The arguments with the items on stdin: behind those that were typed."""
    import os

    from tooli.contract.fit import Words

    tool = session.line.tool
    params = tool.public if tool is not None else ()
    many = next((p for p in params if p.kind == "argument" and p.many), None)
    stdin: Any = sys.stdin
    if many is None:
        if tool is not None and tool.handles:
            return arguments, []  # the input itself is read so
        return arguments, [_misused("the command takes no list of values to read")]
    if session.line.options.get("input") == "-" or stdin is None:
        return arguments, [_misused("stdin is not there to be read")]
    if session.line.options.get("no_input") and stdin.isatty():
        return arguments, [_misused("stdin is a terminal, and --no-input waits for nobody")]
    if session.items is None:
        source = getattr(stdin, "buffer", None)
        try:
            data = source.read() if source is not None else stdin.read().encode()
        except (OSError, ValueError) as failure:
            return arguments, [_misused(f"stdin cannot be read: {failure}")]
        session.items = [os.fsdecode(item) for item in data.split(b"\0") if item]
    typed = arguments.get(many.name)
    texts = [*(typed.texts if isinstance(typed, Words) else typed or ()), *session.items]
    if texts:
        arguments = {**arguments, many.name: Words(texts, session.judge)}
    return arguments, []


def _misused(what: str) -> Problem:
    return Problem("E1007", "null", f"--null: {what}")


def read_payload(source: str) -> tuple[dict[str, Any], list[Problem]]:
    """The arguments in a payload, and what is wrong with it."""
    import json

    try:
        if source == "-":
            if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
                return _wrong("cannot be read: stdin is closed")
            text = sys.stdin.read()
        elif source[:1] == "@":
            with open(source[1:], encoding="utf-8") as file:
                text = file.read()
        else:
            text = source
        payload = json.loads(text)
    except OSError as failure:
        return _wrong(f"cannot be read: {failure.strerror}")
    except (ValueError, RecursionError) as failure:
        return _wrong(f"is not valid JSON: {failure}")
    if not isinstance(payload, dict):
        return _wrong("is not a JSON object")
    return payload, []  # pyright: ignore[reportUnknownVariableType]


def _wrong(what: str) -> tuple[dict[str, Any], list[Problem]]:
    return {}, [Problem("E1008", "input", f"--input {what}")]
