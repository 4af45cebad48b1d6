"""Read arguments from `--input` and `--null`.

`--input` takes all arguments as one JSON object: as text, from `@file`, or from stdin with `-`.
`--null` reads the values of the list argument from stdin. Each value ends with NUL, as in the
output of `find -print0`.
"""

from __future__ import annotations

import json
import os
import sys

from tooli.cli.argv import convert_with_typer
from tooli.core._hot_tables import CALL_OPTIONS, OPTION_ALIASES, OPTION_FIELDS
from tooli.core.call import Problem
from tooli.core.caller_files import MAX_OBJECT_BYTES, open_caller_file, too_large_error
from tooli.core.option_words import option_flag
from tooli.core.tool import Handle
from tooli.errors import AuthError
from tooli.policy.allowed_access import make_file_rules
from tooli.records.call_options import build_options
from tooli.schema import RawText
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TextIO

    from tooli.cli.argv import CommandLine
    from tooli.core import AppState
    from tooli.core.caller_files import FileRules
    from tooli.core.tool import Tool


def add_external_arguments(
    state: AppState,
    line: CommandLine,
    tool: Tool,
    arguments: dict[str, Any],
    problems: Sequence[Problem],
) -> tuple[dict[str, Any], list[Problem], bool]:
    """Return the arguments with those from `--input` and `--null`, and the problems.

    The last value is True if `--null` has read stdin.
    """
    all_problems = list(problems)
    has_read_stdin = False
    before = [
        word for word in line.typer_argv[: line.command_prefix_length] if word not in line.path
    ]
    if line.options.get("sample_via") == "stdin" and (
        "null" in line.options or line.options.get("input") == "-"
    ):  # reading stdin would wait for its end
        message = "--sample-via stdin reads the answers from stdin: pass the arguments another way"
        return arguments, [*all_problems, Problem("E1007", "sample_via", message)], False
    if tool.route is not None and before:  # the call has no other place for these options
        fix = "put the options that belong before the command into the --input object"
        all_problems.append(Problem("E1007", "input", f"--input: {fix}"))
    if "input" in line.options:
        payload, new_problems = read_payload(line.options["input"], make_file_rules(tool, state))
        all_problems += _take_options(line, tool, payload)
        payload = _secrets_as_raw_text(tool, line.options["input"], payload)
        arguments = {**payload, **_merge_dotted(payload, arguments)}
        all_problems += new_problems
    if "null" in line.options:
        argument_params = [p for p in tool.public_params if p.kind == "argument"]
        list_param = next((p for p in argument_params if p.is_multiple), None)
        if list_param is not None:
            name = list_param.name
            texts, problem = _append_stdin_items(line, name, arguments.get(name))
            has_read_stdin = problem is None
            if problem is not None:
                all_problems.append(problem)
            elif texts:
                arguments = {**arguments, name: RawText(texts, convert_with_typer)}
        elif not tool.has_handles:  # an input handle reads NUL-separated items itself
            all_problems.append(_null_problem("the command takes no list of values"))
    return arguments, all_problems, has_read_stdin


def _take_options(line: CommandLine, tool: Tool, payload: dict[str, Any]) -> list[Problem]:
    """Move the framework options in a payload to the line, whose flags win; return the problems.

    A file cannot confirm its own call: `yes` and `apply` must be on the command line.
    """
    problems: list[Problem] = []
    is_file = line.options["input"] == "-" or line.options["input"][:1] == "@"
    for name in [name for name in payload if name not in tool.param_names]:
        option = OPTION_ALIASES.get(name, name)
        if not {"cli", "http"}.issubset(CALL_OPTIONS.get(option, ("", ()))[1]):
            continue
        value = payload.pop(name)
        if value is None or option in line.options:
            continue
        if is_file and option in _CONFIRMING_OPTIONS:
            flag = option_flag(option, tool)
            message = f"--input: {name!r} in a file or on stdin is not accepted: write {flag}"
            problems.append(Problem("E1007", name, message))
            continue
        options, found = build_options({option: value})
        problems += found
        if option in OPTION_FIELDS and not found:
            value = getattr(options, OPTION_FIELDS[option])
        if not found and value is not False:
            line.options[option] = value
    return problems


_CONFIRMING_OPTIONS = ("yes", "apply")


def _merge_dotted(payload: Mapping[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of the line. Dotted flags change fields of an object in the payload."""
    return {
        name: RawText([json.dumps(payload[name])], value.fallback, value.dotted)
        if isinstance(value, RawText)
        and value.dotted
        and not value.texts
        and is_object(payload.get(name))
        else value
        for name, value in arguments.items()
    }


def _secrets_as_raw_text(tool: Tool, source: str, payload: dict[str, Any]) -> dict[str, Any]:
    """Return the payload of `--input`, with its secrets as raw text if it is on the command line.

    The raw text of a secret must be its location, such as `@FILE` or `env:NAME`, not its value.
    """
    if not tool.has_handles or source == "-" or source[:1] == "@":
        return payload
    secrets = secret_params(tool)
    return {k: RawText([str(v)]) if k in secrets else v for k, v in payload.items()}


def secret_params(tool: Tool) -> set[str]:
    """Return the names of the parameters that are secrets."""
    return {p.name for p in tool.public_params if isinstance(p.shape, Handle) and p.shape.is_secret}


def _append_stdin_items(
    line: CommandLine, name: str, given: object
) -> tuple[list[str], Problem | None]:
    """Return the values of the list argument from the line or `--input`, then those on stdin."""
    texts: object = given.texts if isinstance(given, RawText) else () if given is None else given
    if not is_list(texts) or not all(isinstance(text, str) for text in texts):
        return [], _null_problem(f"{name!r} in --input must be a list of strings")
    items, problem = _read_stdin_items(line)
    return [*texts, *items], problem


def _read_stdin_items(line: CommandLine) -> tuple[list[str], Problem | None]:
    """Return the NUL-separated items on stdin, and the problem if stdin cannot be read."""
    stdin: TextIO | None = sys.stdin
    if line.options.get("input") == "-" or stdin is None:
        return [], _null_problem("stdin is not available")
    if line.options.get("no_input") and stdin.isatty():
        return [], _null_problem("stdin is a terminal, and --no-input forbids waiting for input")
    source = getattr(stdin, "buffer", None)
    try:
        data = source.read() if source is not None else stdin.read().encode()
    except (OSError, ValueError) as failure:
        return [], _null_problem(f"stdin cannot be read: {failure}")
    return [os.fsdecode(item) for item in data.split(b"\0") if item], None


def _null_problem(reason: str) -> Problem:
    return Problem("E1007", "null", f"--null: {reason}")


def read_payload(
    source: str, rules: FileRules | None = None
) -> tuple[dict[str, Any], list[Problem]]:
    """Return the arguments in a payload, and the problems with it."""
    try:
        if source == "-":
            if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
                return _payload_problem("cannot be read: stdin is closed")
            text = sys.stdin.read(MAX_OBJECT_BYTES + 1)
            if len(text) > MAX_OBJECT_BYTES:
                raise too_large_error()
        elif source[:1] == "@":
            text = open_caller_file(source[1:], "input", rules).read_object().decode("utf-8")
        else:
            text = source
        payload = json.loads(text)
    except AuthError as denial:
        return {}, [Problem(denial.code, "input", denial.message, denial=denial)]
    except OSError as failure:
        return _payload_problem(f"cannot be read: {failure.strerror}")
    except (ValueError, RecursionError) as failure:
        return _payload_problem(f"is not valid JSON: {failure}")
    if not isinstance(payload, dict):
        return _payload_problem("is not a JSON object")
    return payload, []  # pyright: ignore[reportUnknownVariableType]


def _payload_problem(reason: str) -> tuple[dict[str, Any], list[Problem]]:
    return {}, [Problem("E1008", "input", f"--input {reason}")]
