"""Write a source as a program of its own: an executable file on the PATH.

POSIX systems get a Python script, Windows a batch file. The file starts `@NAME`, so it changes with
the kept source. Only files that this module wrote are replaced or deleted.
"""

from __future__ import annotations

import os
import sys

from tooli.errors import ConflictError, InputError, Suggestion, TemporaryError
from tooli.install.file_changes import write_atomically

MARKER = "Written by `tooli adopt`"
_MAX_SHEBANG_CHARS = 127
_MAX_PROGRAM_BYTES = 1 << 16


def default_program_folder() -> str:
    """Return the folder for programs of the user."""
    if os.name == "nt":
        local = os.environ.get("LOCALAPPDATA") or os.path.join(
            os.path.expanduser("~"), "AppData", "Local"
        )
        return os.path.join(local, "tooli", "bin")
    return os.path.join(os.path.expanduser("~"), ".local", "bin")


def program_path(name: str, folder: str | None) -> str:
    """Return the path of the program of a name."""
    file = f"{name}.cmd" if os.name == "nt" else name
    return os.path.join(
        os.path.abspath(os.path.expanduser(folder or default_program_folder())), file
    )


def check_replaceable(path: str, name: str) -> None:
    """Raise ConflictError if there is a file that is not the program of this source."""
    if os.path.lexists(path) and not is_own_program(path, name):
        raise ConflictError(
            f"{path} exists, and `tooli adopt` did not write it. Nothing was changed.",
            field="install",
            suggestion=Suggestion(
                "retry_with_modified_input", "Choose another name, or another --bin-dir."
            ),
        )


def is_own_program(path: str, name: str) -> bool:
    """True if a file is the program that this module writes for a name."""
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            text = file.read(_MAX_PROGRAM_BYTES)
    except OSError:
        return False
    return f"{MARKER}: @{name} ".encode() in text


def write_program(path: str, name: str) -> None:
    """Write the program of a source, executable by the user; raise an error if that fails."""
    check_replaceable(path, name)
    folder = os.path.realpath(os.path.dirname(path))
    try:
        os.makedirs(folder, exist_ok=True)
        text = batch_file(name) if os.name == "nt" else script(name, sys.executable)
        data = os.fsencode(text)
        write_atomically(os.path.join(folder, os.path.basename(path)), data, 0o755)
    except OSError as failure:
        raise TemporaryError(
            f"{path} cannot be written: {failure.strerror or failure}.",
            code="E4060",
            field="install",
            suggestion=Suggestion("retry_with_modified_input", "Choose another --bin-dir."),
        ) from None


def delete_program(path: str, name: str) -> bool:
    """Delete the program of a source; False if there is none, or another file has its place."""
    if not is_own_program(path, name):
        return False
    try:
        os.unlink(path)
    except OSError as failure:
        raise TemporaryError(
            f"{path} cannot be deleted: {failure.strerror or failure}.", code="E4060"
        ) from None
    return True


def script(name: str, interpreter: str) -> str:
    """Return the text of a Python script. Long paths and paths with spaces need a shell."""
    first = f"#!{interpreter}\n"
    if " " in interpreter or len(first) > _MAX_SHEBANG_CHARS:
        quoted = interpreter.replace("'", "'\"'\"'")
        first = f"#!/bin/sh\n'''exec' '{quoted}' \"$0\" \"$@\"\n' '''\n"
        if "'" in interpreter:
            raise InputError(f"The path of Python contains a quote: {interpreter}", field="install")
    return (
        f"{first}"
        f"# {MARKER}: @{name} (`tooli registry forget {name}` deletes it).\n"
        "import sys\n\n"
        "from tooli.launcher import run_kept_source\n\n"
        f"sys.exit(run_kept_source({name!r}))\n"
    )


def batch_file(name: str) -> str:
    """Return the text of a batch file for Windows."""
    python = sys.executable.replace("%", "%%")
    code = f"import sys; from tooli.launcher import run_kept_source; run_kept_source('{name}')"
    return (
        "@echo off\r\n"
        f"rem {MARKER}: @{name} (`tooli registry forget {name}` deletes it).\r\n"
        f'"{python}" -c "{code}" %*\r\n'
    )
