"""CLIProvider: the commands of an unchanged command-line program as tools.

    app.add_provider(CLIProvider("exe:sqlite-utils"), namespace="sqlite")

The parser of the program is read once, in the program's own interpreter, and cached. A call starts
the program as a process. This module is loaded by every app that has such a provider; what reads
and runs programs is loaded when the tools are first needed.
"""

from __future__ import annotations

import os

from tooli.errors import DefinitionError, calling_location
from tooli.providers.provider import Provider

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from tooli.core.tool import Behavior, Tool

DEFAULT_TIMEOUT = 300.0
"""Seconds that a call may take."""


class CLIProvider(Provider):
    """A provider of the commands of a program: Click, Typer, argparse, optparse or cyclopts.

    Args:
        target: The program: `"pkg.mod:app"` (an object that can be called, in this interpreter),
            `"exe:NAME"` (an installed program) or the path of a script. A relative path starts at
            the folder of the file that calls this.
        name: The name in messages. The default is the name of the program.
        only: The commands to use: names such as `"db.migrate"`, or patterns such as `"db.*"`.
        exclude: The commands to leave out.
        env: Further environment variables of the program.
        cwd: The folder in which the program runs. The default is the current folder of the call.
        annotations: The effects of all commands, or of each command by name or pattern. Without
            them, a command is destructive and open-world.
        timeout: Seconds that a call may take. Then the program and its children are killed.
        sandbox: Read the program in the sandbox: True means where the system has one, and
            `"required"` fails elsewhere. False reads it with all rights of this process.
        stdin: Every tool takes `stdin`, the text on the standard input. Without it, only commands
            that take a file do.
        raw: If the program has no parser that can be read, make one tool that takes the words of
            its command line. Its description is what `--help` prints. The program may be in any
            language.
        hidden: Include hidden commands. One that `only` names exactly is always included.
    """

    def __init__(
        self,
        target: str,
        *,
        name: str | None = None,
        only: str | Sequence[str] | None = None,
        exclude: str | Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        annotations: Behavior | Mapping[str, Behavior] | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
        sandbox: bool | str = True,
        stdin: bool = False,
        raw: bool = False,
        hidden: bool = False,
    ) -> None:
        if sandbox not in (True, False, "required"):
            raise DefinitionError(
                f'CLIProvider(sandbox={sandbox!r}): must be True, False or "required"'
            )
        self.target = target
        self.name = name or target.rpartition(":")[2].rpartition("/")[2]
        self.timeout = timeout
        self.base = _folder_of_caller()
        self.only = _patterns("only", only)
        self.exclude = _patterns("exclude", exclude) or ()
        self.env = {str(key): str(value) for key, value in (env or {}).items()}
        self.cwd = None if cwd is None else os.path.join(self.base, os.fspath(cwd))
        self.annotations = annotations
        self.sandbox = sandbox
        self.stdin = stdin
        self.raw = raw
        self.hidden = hidden
        self._problems: dict[str, str] = {}

    def tools(self) -> Iterator[Tool]:
        """Read the program, and return its commands as tools."""
        from tooli.providers.programs.program_tools import ProgramTools

        found = ProgramTools(self)
        self.description = self.description or found.program.help.partition("\n")[0]
        self._problems = found.problems
        return found.make_tools()

    @property
    def problems(self) -> Mapping[str, str]:
        """The commands that the program could not load."""
        return self._problems


def _patterns(keyword: str, value: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if value is None or isinstance(value, str):
        return None if value is None else (value,)
    patterns: Sequence[Any] = value
    if not all([isinstance(pattern, str) for pattern in patterns]):
        raise DefinitionError(f"CLIProvider({keyword}=…): must be a list of names or patterns")
    return tuple(patterns)


def _folder_of_caller() -> str:
    """Return the folder of the file outside of this package that runs, or the current folder."""
    file, _, _ = calling_location().rpartition(":")
    return os.path.dirname(os.path.abspath(file)) if os.path.isfile(file) else os.getcwd()
