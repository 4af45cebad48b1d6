"""Check a script against the stubs of the tools, and report all errors at once.

The source is fed to the sandbox after one line that calls the function `BARRIER`. The sandbox
checks the types and parses the source before it runs that line, and then waits for the answer. So
a script whose barrier is reached has no errors, and no line of it has run.
"""

from __future__ import annotations

import re
from json import loads

from tooli.describe.mcp_tools import safe_name
from tooli.errors import FormatError, InputError, Suggestion
from tooli.orchestrate.script_hints import ScriptProblem, find_unsupported, hint_for
from tooli.orchestrate.script_tools import BARRIER

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Protocol

    from pydantic_monty import (
        FunctionSnapshot,
        MontyRuntimeError,
        MontySession,
        MontySyntaxError,
    )

    from tooli.errors import ToolError
    from tooli.orchestrate.script_run import Script
    from tooli.orchestrate.script_tools import ScriptTool

    class Feed(Protocol):
        """Feeds a script to the sandbox."""

        def __call__(self, *, skip_type_check: bool) -> FunctionSnapshot: ...


MAX_SOURCE_CHARS = 200_000
"""Maximum length of a script."""
_MAX_PROBLEMS = 50
_MAX_MESSAGE_CHARS = 500

SCRIPT_HAS_ERRORS = "The script has errors, so nothing ran."
BARRIER_LINE = f"{BARRIER}()\n"
_TOP_LEVEL_RETURN = "`return` statement outside of a function"
"""The type checker refuses it; the sandbox ends the script with the value."""


def start_script(
    session: MontySession, script: Script, on_print: Callable[[str, str], None]
) -> FunctionSnapshot:
    """Check a script and return the snapshot at the barrier, before its first line.

    Raises an InputError with all problems if it has any.
    """
    import pydantic_monty

    source = script.source

    def feed(*, skip_type_check: bool) -> FunctionSnapshot:
        snapshot = session.feed_start(
            BARRIER_LINE + source,
            inputs={**script.inputs},
            print_callback=on_print,
            skip_type_check=skip_type_check,
        )
        assert isinstance(snapshot, pydantic_monty.FunctionSnapshot)
        while snapshot.function_name != BARRIER:  # the type checker asks for modules
            snapshot = snapshot.resume_not_handled()
            assert isinstance(snapshot, pydantic_monty.FunctionSnapshot)
        return snapshot

    if len(source) > MAX_SOURCE_CHARS:
        text = f"The script has {len(source)} characters; the maximum is {MAX_SOURCE_CHARS}."
        raise FormatError(text, code="E1034", is_retryable=False)
    problems = find_unsupported(source)
    try:
        snapshot = feed(skip_type_check=False)
    except pydantic_monty.MontyTypingError as error:
        problems += read_diagnostics(error.display(), source, script.tools)
        # The sandbox accepts less than the type checker, so it parses the script as well.
        snapshot = _parse(feed, problems)
    except (pydantic_monty.MontySyntaxError, pydantic_monty.MontyRuntimeError) as error:
        raise script_error([*problems, _read_parser_error(error)], script.advice) from None
    if problems or snapshot is None:
        raise script_error(problems, script.advice)
    return snapshot


def _parse(feed: Feed, problems: list[ScriptProblem]) -> FunctionSnapshot | None:
    """Parse a script without checking its types; add a problem if that fails."""
    import pydantic_monty

    try:
        return feed(skip_type_check=True)
    except (pydantic_monty.MontySyntaxError, pydantic_monty.MontyRuntimeError) as error:
        problems.append(_read_parser_error(error))
        return None


def read_diagnostics(
    text: str, source: str, tools: Mapping[str, ScriptTool]
) -> list[ScriptProblem]:
    """Return the problems that the type checker found, in JSON."""
    found: list[ScriptProblem] = []
    lines = source.split("\n")
    for entry in loads(text):
        message: str = entry["message"]
        if message == _TOP_LEVEL_RETURN:
            continue
        place = entry["location"]
        row = max(place["row"] - 1, 1)
        hint = _renamed_tool_hint(lines[row - 1 : row], tools)
        hint = hint or hint_for(message, _known_names(message, tools))
        found.append(ScriptProblem(row, place["column"], message, hint))
    return found


def _renamed_tool_hint(lines: list[str], tools: Mapping[str, ScriptTool]) -> str | None:
    """Return the hint for a line that calls a tool by a name that scripts use for something else.

    A command `list` is the function `list_`, so `await list()` calls the builtin.
    """
    for name in re.findall(r"\bawait\s+(\w+)\s*\(", "".join(lines)):
        renamed = tools.get(f"{name}_")
        if name not in tools and renamed is not None and safe_name(renamed.tool) == name:
            return f"The tool {name!r} is the function `{name}_`: Python has another {name!r}."
    return None


def _known_names(message: str, tools: Mapping[str, ScriptTool]) -> list[str]:
    """Return the names that a message is about: the parameters of a tool, or the tools."""
    function = re.search(r"of function `(\w+)`", message)
    if function is not None and function[1] in tools:
        return list(tools[function[1]].parameters)
    return list(tools)


def _read_parser_error(error: MontySyntaxError | MontyRuntimeError) -> ScriptProblem:
    """Return the problem for syntax that the sandbox does not support."""
    frames = error.traceback()
    message = str(error).partition("NotImplementedError: ")[2] or str(error)
    message = message.replace("The monty syntax parser does not yet support", "Not supported:")
    line, column = (frames[-1].line - 1, frames[-1].column) if frames else (1, 1)
    return ScriptProblem(max(line, 1), column, message, hint_for(message))


def script_error(problems: list[ScriptProblem], advice: str = "") -> ToolError:
    """Return the error for a script that has not run, with all its problems.

    `advice` says what the script can use.
    """
    unique = list({(p.line, p.column, p.message): p for p in problems}.values())
    unique.sort(key=lambda problem: (problem.line, problem.column))
    first = unique[0]
    more = f" (and {len(unique) - 1} more)" if len(unique) > 1 else ""
    message = f"Line {first.line}, column {first.column}: {first.message}"[:_MAX_MESSAGE_CHARS]
    fix = first.hint or f"Correct the script. {advice}".strip()
    return InputError(
        f"{SCRIPT_HAS_ERRORS} {message}{more}",
        code="E1070",
        suggestion=Suggestion("retry_with_modified_input", fix),
        details={"errors": [problem.to_dict() for problem in unique[:_MAX_PROBLEMS]]},
    )
