"""Malformed: a file of settings that does not parse, so that nobody dares to change it."""

from __future__ import annotations


class MalformedFileError(ValueError):
    """What is wrong with a file, and on which line."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line, self.problem = line, problem
