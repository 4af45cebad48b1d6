"""Program: the words that start the running program from anywhere, for others to write down."""

from __future__ import annotations

import os
import sys

from tooli.errors import InputError, Suggestion

SERVE_ARGV = ("mcp", "serve", "--transport", "stdio")


def server_argv(name: str, command: str | None = None) -> tuple[str, ...]:
    """The words that start an app's MCP server; `said` is how the app is started, if not as now."""
    return (*(_split_command(command) if command is not None else program_argv(name)), *SERVE_ARGV)


def program_argv(name: str) -> tuple[str, ...]:
    """The words that start the program that runs now.

    Its bare name where that is on the PATH and means the same program; the whole path where it
    belongs to a virtual environment, of which an agent knows nothing; the interpreter with a
    module or a script where there is no program at all.
    """
    from shutil import which

    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name:
        return (sys.executable, "-m", spec.name.removesuffix(".__main__"))
    argv0 = sys.argv[0] if sys.argv else ""
    if argv0.endswith((".py", ".pyw")) and os.path.isfile(argv0):
        return (sys.executable, os.path.abspath(argv0))
    program_name = os.path.basename(argv0)
    found = which(program_name) if program_name not in ("", "-c", "-") else None
    here = os.path.abspath(argv0)
    if found is None:
        if program_name not in ("", "-c", "-") and os.path.isfile(here):
            return (here,)
        found, program_name = which(name), name
        if found is None:
            raise InputError(
                f"How {name} is started is not known: it has no program of its own here.",
                field="command",
                suggestion=Suggestion(
                    "retry_with_modified_input",
                    "Say it with --command, such as --command 'uvx mytool'.",
                    applicability="has_placeholders",
                ),
            )
    elif os.path.isfile(here) and os.path.realpath(here) != os.path.realpath(found):
        return (here,)  # the PATH has another program of that name
    return (os.path.abspath(found),) if _is_in_virtualenv(found) else (program_name,)


def _is_in_virtualenv(path: str) -> bool:
    """Whether a program stands in the virtual environment that runs it."""
    if sys.prefix == sys.base_prefix:
        return False
    inside = os.path.join(os.path.abspath(sys.prefix), "")
    return os.path.abspath(path).startswith(inside)


def _split_command(command: str) -> list[str]:
    import shlex

    try:
        argv = shlex.split(command, posix=os.name != "nt")
    except ValueError as wrong:
        raise InputError(f"--command: {wrong}", field="command") from None
    if not argv:
        raise InputError("--command is empty: say how the app is started.", field="command")
    return argv
