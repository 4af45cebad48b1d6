"""The tools of a program: one for each command that is wanted."""

from __future__ import annotations

from fnmatch import fnmatchcase

from tooli.core.tool import Behavior
from tooli.errors import DefinitionError, TimeoutExceeded
from tooli.inputs.secret import SecretInput
from tooli.providers.programs.program_argv import build_command_line
from tooli.providers.programs.program_commands import STDIN
from tooli.providers.programs.program_process import run_process
from tooli.providers.programs.program_reading import (
    FRAMEWORK_SECRET_VARS,
    ReadOptions,
    read_program,
)
from tooli.providers.programs.program_results import program_environment, read_result
from tooli.providers.programs.program_targets import find_target
from tooli.providers.provider import UNKNOWN_EFFECTS, described_tool, tool_path

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from tooli.core.tool import Tool
    from tooli.pipeline.context import Context
    from tooli.providers.programs.cli_provider import CLIProvider
    from tooli.providers.programs.program_commands import Program, ProgramCommand
    from tooli.providers.programs.program_targets import ProgramTarget

GROUP_COMMAND = "run"
"""The name of the tool that calls a group itself."""


class ProgramTools:
    """Reads the program of a provider, and makes its tools."""

    def __init__(self, provider: CLIProvider) -> None:
        self._provider = provider
        self._target = find_target(
            provider.target, provider.base, provider.cwd, any_language=provider.raw
        )
        options = ReadOptions(provider.env, provider.sandbox, raw=provider.raw)
        self.program = read_program(self._target, options)
        self.problems = {text.partition(":")[0]: text for text in self.program.skipped}

    def make_tools(self) -> Iterator[Tool]:
        """Yield the tools of the commands that the author of the app wants."""
        program, target = self.program, self._target
        unused = {*(self._provider.only or ())}
        for command in program.commands:
            words = self._words(command, program, target)
            try:
                key = ".".join(tool_path(words))
            except DefinitionError as failure:
                self.problems[" ".join(words)] = failure.message
                continue
            unused -= {pattern for pattern in unused if fnmatchcase(key, pattern)}
            if self._is_wanted(key, command):
                try:
                    yield self._make_tool(words, key, command, target)
                except DefinitionError as failure:
                    self.problems[key] = failure.message
        for pattern in sorted(unused):
            self.problems[pattern] = f"only={pattern!r}: the program has no such command"

    def _words(self, command: ProgramCommand, program: Program, target: ProgramTarget) -> list[str]:
        """Return the name of a tool: that of its command, after those of its groups."""
        if not command.is_group:
            return [*command.words] or [target.prog]
        taken = {other.words for other in program.commands if not other.is_group}
        name = GROUP_COMMAND
        while (*command.words, name) in taken:
            name += f"-{target.prog}" if name == GROUP_COMMAND else "-2"
        return [*command.words, name]

    def _is_wanted(self, key: str, command: ProgramCommand) -> bool:
        if any([fnmatchcase(key, pattern) for pattern in self._provider.exclude]):
            return False
        if command.hidden and not self._provider.hidden:
            return key in (self._provider.only or ())
        return self._provider.only is None or any(
            [fnmatchcase(key, p) for p in self._provider.only]
        )

    def _effects(self, key: str) -> Behavior:
        annotations = self._provider.annotations
        if annotations is None or isinstance(annotations, Behavior):
            return annotations or UNKNOWN_EFFECTS
        exact = annotations.get(key)
        if exact is not None:
            return exact
        found = [value for pattern, value in annotations.items() if fnmatchcase(key, pattern)]
        return found[0] if found else UNKNOWN_EFFECTS

    def _make_tool(
        self, words: Sequence[str], key: str, command: ProgramCommand, target: ProgramTarget
    ) -> Tool:
        call = _ProgramCall(command, target, self._provider.env, self._provider.cwd)
        tool = described_tool(
            words,
            call.run,
            input_schema=command.input_schema(takes_stdin=self._provider.stdin),
            description=command.help or f"Run `{' '.join((target.prog, *command.words))}`.",
            annotations=self._effects(key),
            positional=command.positional(),
            stops_itself=True,
            timeout=self._provider.timeout,
            deprecated=command.deprecated,
            hidden=command.hidden,
        )
        # The values are checked while the command line is built, without jsonschema.
        return _with_secrets(tool.replace(argument_check=None), command)


class _ProgramCall:
    """Runs one command of a program."""

    def __init__(
        self,
        command: ProgramCommand,
        target: ProgramTarget,
        env: Mapping[str, str],
        cwd: str | None,
    ) -> None:
        self._command = command
        self._target = target
        self._env = env
        self._cwd = cwd

    def run(self, arguments: dict[str, Any], ctx: Context) -> Any:
        """Start the program, wait for its end, and return its result."""
        line = build_command_line(self._command, arguments)
        text = arguments.get(STDIN)
        seconds = ctx.remaining_time()
        finished = run_process(
            (*self._target.argv, *line.words),
            env=program_environment({**self._env, **line.env}, FRAMEWORK_SECRET_VARS),
            cwd=self._cwd,
            stdin=None if text is None else str(text).encode("utf-8", "replace"),
            timeout=seconds,
            on_start=ctx.on_stop,
        )
        if finished.timed_out:
            raise TimeoutExceeded(f"{self._target.prog} did not end in time and was killed.")
        return read_result(finished, self._target.prog, ctx.warn)


def _with_secrets(tool: Tool, command: ProgramCommand) -> Tool:
    """Return a tool whose passwords and tokens are secrets."""
    secrets = {param.name for param in command.params() if param.is_secret}
    if not secrets:
        return tool
    shape: Any = SecretInput.tooli_shape(str)
    params = [
        p.replace(shape=shape, annotation=SecretInput[str], exact_type=None)
        if p.name in secrets
        else p
        for p in tool.params
    ]
    return tool.replace(params=tuple(params), has_handles=True, may_have_secrets=True)
