"""file-tools 1.0.0 as Python functions.

    from file_tools_api import find_files

What a command refuses or fails with is raised: a CommandError, with its code.

Made by tooli. To make it again:

    file-tools export --target python --mode subprocess
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

COMMAND = ["file-tools"]
CALLER = "python"
TIMEOUT = 120.0  # seconds
FIXES = {
    "E1003": "Say true or false.",
    "E4040": "Ask the user to see whether the program is installed, and runs.",
    "E4050": "It may be half done: look first. Then ask for less at once.",
}


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


def call(
    words: list[str], arguments: dict[str, Any], timeout: float, flags: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Run a command and return its envelope, whatever happens.

    The arguments go in as JSON on stdin: no value of theirs can pass for an option.
    Those named in `flags` are meant for the program itself, and become options.
    """
    options = {flag: arguments[flag] for flag in flags if flag in arguments}
    arguments = {key: value for key, value in arguments.items() if key not in options}
    if not all(isinstance(value, bool) for value in options.values()):
        return failure("E1003", f"{', '.join(options)}: neither true nor false.")
    said = [f"--{flag.replace('_', '-')}" for flag, value in options.items() if value]
    try:
        process = subprocess.Popen(
            [*COMMAND, *words, *said, "--json", "--input", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "TOOLI_CALLER": CALLER},
            start_new_session=True,  # so that its own children can be stopped with it
        )
    except OSError as error:
        return failure("E4040", f"{COMMAND[0]} cannot be started: {error.strerror}.")
    with process:
        try:
            out, err = process.communicate(json.dumps(arguments, default=str).encode(), timeout)
        except subprocess.TimeoutExpired:
            return failure("E4050", f"No answer within {timeout:g} seconds.")
        finally:
            if process.poll() is None:
                stop(process)
    return envelope_of(process.returncode, out, err)


def envelope_of(code: int | None, out: bytes, err: bytes) -> dict[str, Any]:
    """What the program printed, if that is an envelope; otherwise one that says so."""
    try:
        envelope = json.loads(out)
        if isinstance(envelope["ok"], bool):
            return envelope
    except (ValueError, TypeError, KeyError):
        pass
    said = (err or out).decode(errors="replace").strip()[-1000:]
    return failure("E4040", f"{COMMAND[0]} ended with exit code {code}: {said}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a program and what it has started."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except ProcessLookupError:
        pass


def failure(code: str, message: str) -> dict[str, Any]:
    """The envelope of a call that the app itself could not answer."""
    action = "ask_human" if code == "E4040" else "retry_with_modified_input"
    error = {
        "code": code,
        "category": "input" if code.startswith("E1") else "runtime",
        "message": message,
        "suggestion": {"action": action, "fix": FIXES[code]},
        "is_retryable": action != "ask_human",
    }
    return {"ok": False, "error": error, "meta": {"tool": "file-tools"}}


class CommandError(Exception):
    """What a command refused or failed with."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.error = error
        self.code: str = error["code"]
        self.category: str = error["category"]
        self.field: str | None = error.get("field")
        self.suggestion: dict[str, Any] | None = error.get("suggestion")
        self.is_retryable: bool = error["is_retryable"]


def run(
    words: list[str],
    arguments: dict[str, Any],
    timeout: float = TIMEOUT,
    flags: tuple[str, ...] = (),
) -> Any:
    """The result of a command."""
    envelope = call(words, arguments, timeout, flags)
    if not envelope["ok"]:
        raise CommandError(envelope["error"])
    return envelope.get("result")


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
    return run(
        ["find-files"],
        {
            "pattern": pattern,
            "root": root,
            "max_depth": max_depth,
            "include_hidden": include_hidden,
        },
    )


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
    return run(
        ["search"],
        {"text": text, "pattern": pattern, "root": root, "ignore_case": ignore_case},
    )


def checksum(
    files: Sequence[str | Path], algorithm: Literal["sha256", "sha1", "md5", "blake2b"] = "sha256"
) -> list[Checksum]:
    """Compute the digests of files, all at the same time.

    Args:
        files: The files to read.
        algorithm: Which digest.
    """
    return run(["checksum"], {"files": files, "algorithm": algorithm})


def rename(rule: Rule, root: str | Path = ".") -> list[Renamed]:
    """Rename the files of one folder by a rule; nothing is ever overwritten.

    Args:
        rule: The rule: JSON, @file, or part by part, as in --rule.match '*.txt'.
        root: The folder.
    """
    return run(["rename"], {"rule": rule, "root": root})


def delete(files: Sequence[str | Path], yes: bool = False) -> list[File]:
    """Delete files, and say what was deleted.

    Args:
        files: The files to delete. If one of them is missing, all of them stay.
        yes: Confirm: this may destroy data. Without it the call is refused.
    """
    return run(["delete"], {"files": files, "yes": yes}, flags=("yes",))
