"""Find apps among the programs on the PATH: those that answer `--discover`.

Every program that is asked is run. Therefore only Python scripts are asked whose interpreter has
tooli, each with a time limit, and in the sandbox: it may read files, and neither write files nor
open connections. On a system without the sandbox nothing is run unless the user wants that.
"""

from __future__ import annotations

import json
import os
import stat
from shutil import which
from subprocess import DEVNULL, PIPE, Popen
from threading import Event, Timer

from tooli.core import Record
from tooli.errors import AuthError, Suggestion
from tooli.execution.interpreter import isolated_argv
from tooli.execution.processes import kill_process_group
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tooli.core.protocols import JsonObject

TIME_LIMIT = 10.0
"""Seconds in which a program has to answer."""

MAX_ANSWER_BYTES = 1 << 20
MAX_PROGRAMS = 500
"""Maximum number of programs that are asked."""

_MAX_HEAD_BYTES = 4096
_HAS_TOOLI = "import importlib.util, sys; sys.exit(importlib.util.find_spec('tooli') is None)"
_CONFINE = "from tooli.sources.confined_program import main; main()"


class PathProgram(Record):
    """A program that has answered `--discover`."""

    name: str
    path: str
    description: str
    version: str
    tools: tuple[str, ...]


def find_programs(*, unconfined: bool) -> tuple[list[PathProgram], list[str]]:
    """Return the apps among the programs on the PATH, and the programs that did not answer."""
    if not unconfined:
        _require_sandbox()
    found: list[PathProgram] = []
    problems: list[str] = []
    interpreters: dict[str, bool] = {}
    for count, (path, interpreter) in enumerate(_python_scripts()):
        if count == MAX_PROGRAMS:
            problems.append(f"only the first {MAX_PROGRAMS} Python programs were asked")
            break
        if interpreter not in interpreters:
            argv = [interpreter, "-I", "-c", _HAS_TOOLI]
            interpreters[interpreter] = _run(argv, unconfined)[0] == 0
        if not interpreters[interpreter]:
            continue
        status, answer = _run([path, "--discover"], unconfined)
        program = _parse_answer(path, answer) if status == 0 else None
        if program is not None:
            found.append(program)
        elif status is None:
            problems.append(f"{path} did not answer --discover in {TIME_LIMIT:.0f} s")
    return found, problems


def _require_sandbox() -> None:
    support = detect_sandbox_support()
    if support.landlock and support.seccomp:
        return
    missing = "; ".join(support.missing) or "Landlock or seccomp is missing"
    raise AuthError(
        f"Programs are run in the sandbox only, which this system does not have: {missing}.",
        code="E2006",
        field="programs",
        suggestion=Suggestion(
            "ask_human", "To run the Python programs on the PATH without it, add --unconfined."
        ),
    )


def _python_scripts() -> Iterator[tuple[str, str]]:
    """Yield the Python scripts on the PATH, each with its interpreter. The first of a name wins."""
    seen: set[str] = set()
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if not os.path.isabs(folder):  # it may belong to the project of somebody else
            continue
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.name in seen:
                continue
            seen.add(entry.name)
            interpreter = _read_interpreter(entry.path)
            if interpreter:
                yield entry.path, interpreter


def _read_interpreter(path: str) -> str | None:
    """Return the Python that a script starts, by its first lines; None for other files."""
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode) or not os.access(path, os.X_OK):
            return None
        with open(path, "rb") as file:
            head = file.read(_MAX_HEAD_BYTES)
    except OSError:
        return None
    if head[:2] != b"#!":
        return None
    first, _, rest = head[2:].partition(b"\n")
    words = first.decode("utf-8", "replace").split()
    if words[:1] == ["/bin/sh"] and rest.startswith(b"'''exec' "):
        line = rest.partition(b"\n")[0].decode("utf-8", "replace")
        words = [line.removeprefix("'''exec' ").partition(' "$0"')[0].strip("'\"")]
    if not words or not os.path.isabs(words[0]):
        return None
    if os.path.basename(words[0]) == "env":
        words = [which(words[-1]) or ""]
    is_python = os.path.basename(words[0]).startswith(("python", "pypy"))
    return words[0] if is_python else None


def _run(argv: Sequence[str], unconfined: bool) -> tuple[int | None, bytes]:
    """Run a program; return its exit code, or None at the time limit, and its output."""
    full = list(argv) if unconfined else [*isolated_argv(_CONFINE), *argv]
    try:
        process = Popen(
            full, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, start_new_session=True, cwd=os.sep
        )
    except OSError:
        return 127, b""
    expired = Event()

    def stop() -> None:
        expired.set()
        _kill(process)

    timer = Timer(TIME_LIMIT, stop)
    timer.daemon = True
    timer.start()
    with process:
        assert process.stdout is not None
        try:
            answer = process.stdout.read(MAX_ANSWER_BYTES + 1)
            if len(answer) > MAX_ANSWER_BYTES:
                _kill(process)
            process.wait()
        finally:
            timer.cancel()
            _kill(process)  # its children, and itself after Ctrl-C
    return (None, b"") if expired.is_set() else (process.returncode, answer)


def _kill(process: Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        kill_process_group(process.pid)
    process.kill()


def _parse_answer(path: str, answer: bytes) -> PathProgram | None:
    """Return the program of an answer; None if the answer is not that of an app."""
    if len(answer) > MAX_ANSWER_BYTES:
        return None
    try:
        data = json.loads(answer)
    except (ValueError, RecursionError):
        return None
    if not is_object(data) or not is_list(data.get("commands")):
        return None
    names = [command.get("name") for command in data["commands"] if is_object(command)]
    return PathProgram(
        os.path.basename(path),
        path,
        _text(data, "description"),
        _text(data, "version"),
        tuple([name for name in names if isinstance(name, str)]),
    )


def _text(data: JsonObject, key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""
