"""Malformed: a file of settings that does not parse, so that nobody dares to change it."""

from __future__ import annotations


class Malformed(ValueError):  # noqa: N818  what it says of a file
    """What is wrong with a file, and on which line."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line, self.what = line, what
