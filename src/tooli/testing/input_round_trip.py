"""Check that a command reads the same from a file and from stdin."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import TYPE_CHECKING

from tooli.core.tool import unwrap_optional
from tooli.inputs.source import SourceShape
from tooli.similar_names import did_you_mean
from tooli.testing.assertions import diff, format_json, without_volatile_fields
from tooli.testing.command_runner import invoke

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tooli.app import Tooli
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param, Tool


def assert_same_input(
    app: Tooli,
    command: str,
    content: str | bytes,
    *args: str,
    param: str | None = None,
    suffix: str = "",
) -> JsonObject:
    """Check that a command gives the same answer for content from a file and from stdin.

        assert_same_input(app, "process", "name,size\\na.txt,6\\n", suffix=".csv")

    The command runs twice, with the path of a file and with `-`. Both calls must return the same
    result, or an error with the same code. Returns the envelope of the second one, without
    volatile fields.

    Args:
        app: The app.
        command: The name of the command, such as `process` or `users import`.
        content: What the file and stdin contain.
        args: Other arguments and options of the command.
        param: The parameter of type `StdinOr`, if the command has several.
        suffix: The ending of the file name, which may select the format.
    """
    tool = app.find(command)
    if tool is None:
        raise AssertionError(f"there is no command {command!r}")
    source = _find_source(tool, param)
    data = content.encode() if isinstance(content, str) else content
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, f"input{suffix}")
    try:
        with open(path, "wb") as file:
            file.write(data)
        from_file = _run(app, tool, _source_argv(source, path), args, None)
        from_stdin = _run(app, tool, _source_argv(source, "-"), args, data)
    finally:
        shutil.rmtree(folder)
    expected, found = [format_json(_comparable(answer)) for answer in (from_file, from_stdin)]
    difference = diff(expected, found, "from a file", "from stdin")
    assert not difference, f"{command} reads stdin differently than a file\n{difference}"
    return from_stdin


def _find_source(tool: Tool, name: str | None) -> Param:
    """Return the parameter that reads a file or stdin."""
    sources = {
        param.name: param
        for param in tool.command_params
        if isinstance(unwrap_optional(param.shape), SourceShape)
    }
    if name is None and len(sources) == 1:
        return next(iter(sources.values()))
    if name in sources:
        return sources[name]
    hint = did_you_mean(name, sources) if name is not None else ""
    known = ", ".join(sources) or "none"
    raise AssertionError(
        f"pass param=, a parameter of {tool.name} with the type StdinOr: {known}{hint}"
    )


def _source_argv(param: Param, value: str) -> list[str]:
    return [max(param.flags, key=len), value] if param.flags else [value]


def _run(
    app: Tooli, tool: Tool, source_argv: Sequence[str], args: Sequence[str], stdin: bytes | None
) -> JsonObject:
    words = [*tool.cli_path, *source_argv, *args, "--tooli-json"]
    return without_volatile_fields(invoke(app, *words, input=stdin, mode="json").envelope)


def _comparable(envelope: JsonObject) -> JsonObject:
    """Return the result, or the code of the error: its message names the file."""
    if envelope["ok"]:
        return {"result": envelope.get("result")}
    return {"error": envelope["error"]["code"]}
