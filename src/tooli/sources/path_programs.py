"""Find apps among the programs on the PATH: those that answer `--discover`.

Every program that is asked is run. Therefore only Python scripts are asked whose interpreter has
tooli, each with a time limit, and in the sandbox: it may read files, and neither write files nor
open connections. On a system without the sandbox nothing is run unless the user wants that.

Several programs are run at a time. Those that are no apps are remembered for a day, unless they
or the packages of their interpreter change.
"""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from shutil import which
from subprocess import DEVNULL, PIPE, Popen
from threading import Event, Lock, Timer
from time import time

from tooli.core import Record
from tooli.errors import AuthError, Suggestion
from tooli.execution.interpreter import isolated_argv
from tooli.execution.processes import kill_process_group
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support
from tooli.providers.openapi.document_cache import content_key, read_entry, write_entry
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TypeAlias

    from tooli.core.protocols import JsonObject

    Answer: TypeAlias = tuple[int | None, bytes]

TIME_LIMIT = 10.0
"""Seconds in which a program has to answer."""

MAX_ANSWER_BYTES = 1 << 20
MAX_PROGRAMS = 500
"""Maximum number of programs that are asked."""

_MAX_HEAD_BYTES = 4096
REMEMBERED_SECONDS = 24 * 3600.0
"""Seconds for which a program that is not an app is not run again."""
MAX_PROCESSES = 8
"""Maximum number of programs that run at a time."""
_MAX_CACHE_BYTES = 1 << 20

# Exits with 0 if tooli is there, and prints when the folders of packages have changed.
_HAS_TOOLI = """
import importlib.util, os, sys
print([os.stat(path).st_mtime_ns for path in sys.path if os.path.isdir(path)])
sys.exit(importlib.util.find_spec("tooli") is None)
"""
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
    problems: list[str] = []
    runner, known = _Runner(unconfined), _KnownPrograms(unconfined)
    packages: dict[str, bytes | None] = {}  # by interpreter; None: it has no tooli
    marks: dict[str, str] = {}  # the state of each program that may be an app
    for count, (path, interpreter) in enumerate(_python_scripts()):
        if count == MAX_PROGRAMS:
            problems.append(f"only the first {MAX_PROGRAMS} Python programs were asked")
            break
        if interpreter not in packages:
            status, printed = runner.run([interpreter, "-I", "-c", _HAS_TOOLI])
            packages[interpreter] = printed if status == 0 else None
        found = packages[interpreter]
        if found is not None:
            marks[path] = _mark(path, found)
    asked = [path for path, mark in marks.items() if not known.has(path, mark)]
    found_answers = runner.run_all([[path, "--discover"] for path in asked])
    answers = dict(zip(asked, found_answers, strict=True))
    programs: list[PathProgram] = []
    for path, mark in marks.items():
        status, answer = answers.get(path, (1, b""))
        program = _parse_answer(path, answer) if status == 0 else None
        if program is not None:
            programs.append(program)
        elif path in answers:
            known.add(path, mark, is_slow=status is None)
        if known.is_slow(path):
            problems.append(f"{path} did not answer --discover in {TIME_LIMIT:.0f} s")
    known.save(marks)
    return programs, problems


def _mark(path: str, packages: bytes) -> str:
    """Return a digest of the state of a program and of the packages of its interpreter."""
    try:
        found = os.stat(path)
    except OSError:  # it was deleted
        return ""
    return content_key("program", packages, repr((found.st_mtime_ns, found.st_size)).encode())


class _KnownPrograms:
    """The programs that are no apps: the state in which they were asked, and when."""

    def __init__(self, unconfined: bool) -> None:
        self._key = content_key("programs that are no apps", b"01"[unconfined : unconfined + 1])
        self._now = time()
        self._entries: dict[str, list[object]] = {}
        try:
            found: object = json.loads(read_entry(self._key, _MAX_CACHE_BYTES) or b"{}")
        except ValueError:
            found = {}
        for path, entry in found.items() if is_object(found) else ():
            if is_list(entry) and len(entry) == 3 and self._is_recent(entry[1]):
                self._entries[path] = [*entry]

    def _is_recent(self, asked_at: object) -> bool:
        return isinstance(asked_at, float) and 0 <= self._now - asked_at < REMEMBERED_SECONDS

    def has(self, path: str, mark: str) -> bool:
        """True if a program was asked in this state."""
        if path in self._entries and self._entries[path][0] != mark:
            del self._entries[path]
        return path in self._entries

    def add(self, path: str, mark: str, *, is_slow: bool) -> None:
        """Remember a program that is no app, or that did not answer in time."""
        self._entries[path] = [mark, self._now, is_slow]

    def is_slow(self, path: str) -> bool:
        """True if a program did not answer in time."""
        return path in self._entries and self._entries[path][2] is True

    def save(self, paths: Iterable[str]) -> None:
        """Write the entries of these programs to the disk."""
        entries = {path: self._entries[path] for path in paths if path in self._entries}
        write_entry(self._key, json.dumps(entries).encode())


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


class _Runner:
    """Runs programs, in the sandbox unless `unconfined`."""

    def __init__(self, unconfined: bool) -> None:
        self._prefix = [] if unconfined else isolated_argv(_CONFINE)
        self._running: set[Popen[bytes]] = set()
        self._lock = Lock()
        self._is_stopped = False

    def run_all(self, lines: Sequence[Sequence[str]]) -> list[Answer]:
        """Run several programs at a time; return their answers. Ctrl-C ends all of them."""
        count = min(MAX_PROCESSES, 2 * (os.cpu_count() or 1))
        with ThreadPoolExecutor(count, thread_name_prefix="tooli-discover") as pool:
            try:
                return list(pool.map(self.run, lines))
            except BaseException:
                with self._lock:
                    self._is_stopped = True
                    for process in self._running:
                        _kill(process)
                raise

    def run(self, argv: Sequence[str]) -> Answer:
        """Run a program; return its exit code, or None at the time limit, and its output."""
        with self._lock:
            if self._is_stopped:
                return 127, b""
            try:
                process = Popen(
                    [*self._prefix, *argv],
                    stdin=DEVNULL,
                    stdout=PIPE,
                    stderr=DEVNULL,
                    start_new_session=True,
                    cwd=os.sep,
                )
            except OSError:
                return 127, b""
            self._running.add(process)
        try:
            return _read_answer(process)
        finally:
            with self._lock:
                self._running.discard(process)


def _read_answer(process: Popen[bytes]) -> Answer:
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
