"""The records of which the table of programs consists."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Line:
    """One command line of a program.

    `stdin` is what the program can read from a pipe. `answers` are the texts that it displays at a
    terminal, each with the keys to type then.
    """

    text: str
    stdin: str = ""
    answers: Sequence[tuple[str, str]] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    at: tuple[str, ...] = ("pipe", "terminal")

    @property
    def arguments(self) -> list[str]:
        """The arguments of the program."""
        return shlex.split(self.text)

    @property
    def is_completion(self) -> bool:
        """True if a shell asks for completions."""
        return "COMP_WORDS" in self.env

    @property
    def title(self) -> str:
        """The line as a test id."""
        variables = "".join(f"{name}={value} " for name, value in self.env.items())
        return f"{variables}{self.text or '(no arguments)'}"


@dataclass(frozen=True)
class Program:
    """A program, the style that it stands for, the files that it starts with, and its lines."""

    name: str
    style: str
    lines: Sequence[str | Line]
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    setup: str = ""

    def command_lines(self) -> list[Line]:
        """Return every command line as a record."""
        return [Line(line) if isinstance(line, str) else line for line in self.lines]


def completion(variable: str, words: str, shell: str = "bash") -> Line:
    """Return the request that a shell sends to complete the last of the words."""
    count = str(len(words.split(" ")) - 1)
    variables = {variable: f"complete_{shell}", "COMP_WORDS": words, "COMP_CWORD": count}
    return Line("", env=variables, at=("pipe",))
