"""file-tools 1.0.0 as Python functions.

    from file_tools_api import find_files

The errors are tooli's own: tooli.ToolError and those below it.

Made by tooli. To make it again:

    file-tools export --target python --mode import
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict

from examples.file_tools.app import app


class File(TypedDict):
    """A file and how many bytes it has."""

    path: str
    size: int


class Match(TypedDict):
    """A line that contains the text."""

    path: str
    line: int
    text: str


class Checksum(TypedDict):
    """A file and its digest."""

    path: str
    digest: str


class RuleReplaceRequired(TypedDict):
    old: str


class RuleReplace(RuleReplaceRequired, total=False):
    """One text in the name, and what to write in its place."""

    new: str


class RuleRequired(TypedDict):
    match: str


class Rule(RuleRequired, total=False):
    """The rule: JSON, @file, or part by part, as in --rule.match '*.txt'."""

    prefix: str
    ending: str | None
    replace: RuleReplace | None


class Renamed(TypedDict):
    """What a file was called, and what it is called now."""

    old: str
    new: str


def find_files(
    pattern: str, root: str | Path = ".", max_depth: int = 10, include_hidden: bool = False
) -> list[File]:
    """Find files by name, in a folder and the folders below it.

    Args:
        pattern: Glob for the file's name, such as '*.py'.
        root: Folder to start in.
        max_depth: Levels of folders to look at; 1 is the root alone.
        include_hidden: Look at names that start with a dot, too.
    """
    return app.call(
        "find-files",
        pattern=pattern,
        root=root,
        max_depth=max_depth,
        include_hidden=include_hidden,
    ).unwrap()


def search(
    text: str, pattern: str = "*", root: str | Path = ".", ignore_case: bool = False
) -> list[Match]:
    """Find lines that contain a text; each is given out as soon as it is found.

    Args:
        text: What to look for.
        pattern: Glob for the names of the files to read.
        root: Folder to start in.
        ignore_case: Take upper and lower case for the same.
    """
    return app.call(
        "search",
        text=text,
        pattern=pattern,
        root=root,
        ignore_case=ignore_case,
    ).unwrap()


def checksum(
    files: Sequence[str | Path], algorithm: Literal["sha256", "sha1", "md5", "blake2b"] = "sha256"
) -> list[Checksum]:
    """Compute the digests of files, all at the same time.

    Args:
        files: The files to read.
        algorithm: Which digest.
    """
    return app.call("checksum", files=files, algorithm=algorithm).unwrap()


def rename(rule: Rule, root: str | Path = ".") -> list[Renamed]:
    """Rename the files of one folder by a rule; nothing is ever overwritten.

    Args:
        rule: The rule: JSON, @file, or part by part, as in --rule.match '*.txt'.
        root: The folder.
    """
    return app.call("rename", rule=rule, root=root).unwrap()


def delete(files: Sequence[str | Path], yes: bool = False) -> list[File]:
    """Delete files, and say what was deleted.

    Args:
        files: The files to delete. If one of them is missing, all of them stay.
        yes: Confirm: this may destroy data. Without it the call is refused.
    """
    return app.call("delete", files=files, yes=yes).unwrap()
