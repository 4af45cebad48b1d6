"""FileSystemProvider: the functions in a folder of Python files as tools.

    app.add_provider(FileSystemProvider("tools"))

    tools/orders.py          ─▶ list-orders, cancel-order
    tools/users/create.py    ─▶ users create-user

Files are compiled from their source: the timestamps of .pyc files have a resolution of seconds, so
that a quick edit would run old code. Each version of a file is a module with a name of its own,
which stays in `sys.modules`. So a running call keeps its version, and data classes, pickle and type
annotations work. All changes take effect in one assignment.
"""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from hashlib import blake2b
from stat import S_ISREG
from threading import Event, Lock, Thread
from types import FunctionType, ModuleType
from typing import Any

from tooli.errors import DefinitionError, calling_location
from tooli.providers.provider import Provider, function_tool, tool_path

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from typing_extensions import Unpack

    from tooli.core.protocols import CommandOptions
    from tooli.core.tool import Tool

    Fingerprint = tuple[int, int, int]
    """The time of the last change of a file, its size and its inode number."""
    _Mark = tuple[str | None, CommandOptions]

POLL_SECONDS = 0.5
"""Seconds between two checks of the files."""

MAX_FILES = 20_000
"""Maximum number of files of one folder."""

_MARK = "_tooli_tool"
_PACKAGE = "tooli_files"


def tool(name: Any = None, **options: Unpack[CommandOptions]) -> Any:
    """Mark a function as a tool of a `FileSystemProvider`: `@tool` or `@tool("name", …)`.

    Takes the keywords of `@app.command()`. The function itself does not change.
    """

    def mark(fn: Any) -> Any:
        setattr(fn, _MARK, (None if callable(name) else name, options))
        return fn

    return mark(name) if callable(name) else mark


class FileSystemProvider(Provider):
    """A provider of the functions in the Python files of a folder and of the folders below it.

    In a file with `@tool`, the marked functions are tools. In a file without, each public function
    that the file itself defines is a tool if all its parameters and its result have annotations.
    The folders below become groups. Files and folders whose names start with "_" or "." are
    skipped.

    Args:
        directory: The folder. A relative path starts at the folder of the file that calls this.
        hot_reload: A running server checks the files twice a second, and reads those that have
            changed. A file that cannot be read keeps its last tools, and is reported.
        name: The name in messages. The default is the name of the folder.
    """

    def __init__(
        self, directory: str | os.PathLike[str], *, hot_reload: bool = False, name: str = ""
    ) -> None:
        path = os.fspath(directory)
        self.directory = os.path.normpath(os.path.join(_folder_of_caller(), path))
        self.name = name or os.path.basename(self.directory)
        self.hot_reload = hot_reload
        self._files: Mapping[str, _File] = {}
        self._lock = Lock()
        self._end = Event()

    def tools(self) -> Iterator[Tool]:
        """Return the tools. Only files that have changed are read again."""
        files = self._refresh()
        return (tool for _, file in sorted(files.items()) for tool in file.tools)

    @property
    def problems(self) -> Mapping[str, str]:
        """What is wrong with the files that cannot be read, by the path of the file."""
        return {path: file.problem for path, file in self._files.items() if file.problem}

    def watch(self, changed: Callable[[], None]) -> None:
        """With `hot_reload`, check the files in a thread, and call `changed` after a change."""
        if self.hot_reload:
            self._end.clear()
            Thread(target=self._poll, args=(changed,), name="tooli-files", daemon=True).start()

    def close(self) -> None:
        """Stop checking the files."""
        self._end.set()

    # -------------------------------------------------------------- reading

    def _refresh(self) -> Mapping[str, _File]:
        """Read the files that have changed, and replace the table of files at once."""
        with self._lock:
            known, files = self._files, dict[str, _File]()
            for path, fingerprint in self._snapshot().items():
                before = known.get(path)
                if before is not None and before.fingerprint == fingerprint:
                    files[path] = before
                else:
                    files[path] = self._read(path, fingerprint, before)
            self._files = files
            return files

    def _snapshot(self) -> dict[str, Fingerprint]:
        """Return the Python files below the folder, by their relative path."""
        if not os.path.isdir(self.directory):
            raise DefinitionError(f"{self.directory} is not a folder")
        found: dict[str, Fingerprint] = {}
        for path in _python_files(self.directory):
            try:
                info = os.stat(path)
            except OSError:  # it was deleted
                continue
            if not S_ISREG(info.st_mode):  # a pipe would never end
                continue
            if len(found) == MAX_FILES:
                raise DefinitionError(f"{self.directory} has more than {MAX_FILES:,} Python files")
            relative = os.path.relpath(path, self.directory)
            found[relative] = (info.st_mtime_ns, info.st_size, info.st_ino)
        return found

    def _read(self, path: str, fingerprint: Fingerprint, before: _File | None) -> _File:
        """Return the tools of a file. A file that cannot be read keeps its last tools."""
        generation = 0 if before is None else before.generation + 1
        folder = os.path.dirname(path).replace("_", "-")
        try:
            groups = tool_path(folder.split(os.sep)) if folder else ()
            module = _run_file(os.path.join(self.directory, path), generation)
            tools = tuple(_tools_of(module, groups))
        except BaseException as failure:
            if isinstance(failure, KeyboardInterrupt) or _is_own_signal(failure):
                raise
            tools = () if before is None else before.tools
            kept = "; its last tools are kept" if tools else ""
            return _File(fingerprint, generation, tools, _describe(failure) + kept)
        return _File(fingerprint, generation, tools, "")

    # -------------------------------------------------------------- changes

    def _poll(self, changed: Callable[[], None]) -> None:
        """Call `changed` after a change, once the files have been the same in two checks."""
        last: dict[str, Fingerprint] | None = None
        while not self._end.wait(POLL_SECONDS):
            try:
                found = self._snapshot()
            except (DefinitionError, OSError):  # the folder is being replaced
                continue
            known = {path: file.fingerprint for path, file in self._files.items()}
            if found == last and found != known:
                changed()
            last = found


class _File:
    """One version of a file: its tools, and what is wrong with it."""

    __slots__ = ("fingerprint", "generation", "problem", "tools")

    def __init__(
        self, fingerprint: Fingerprint, generation: int, tools: tuple[Tool, ...], problem: str
    ) -> None:
        self.fingerprint = fingerprint
        self.generation = generation
        self.tools = tools
        self.problem = problem


def _folder_of_caller() -> str:
    """Return the folder of the file outside of this package that runs, or the current folder."""
    file, _, _ = calling_location().rpartition(":")
    return os.path.dirname(os.path.abspath(file)) if os.path.isfile(file) else os.getcwd()


def _python_files(folder: str) -> Iterator[str]:
    for path, folders, names in os.walk(folder):
        folders[:] = sorted([name for name in folders if name[0] not in "._"])
        for name in names:
            if name.endswith(".py") and name[0] not in "._":
                yield os.path.join(path, name)


def _run_file(path: str, generation: int) -> ModuleType:
    """Run a file as a new module. What it prints goes to stderr."""
    with open(path, "rb") as file:
        source = file.read()
    code = compile(source, path, "exec", dont_inherit=True)
    digest = blake2b(os.fsencode(path), digest_size=8).hexdigest()
    module = ModuleType(f"{_PACKAGE}_{digest}_{generation}")
    module.__file__ = path
    module.__package__ = ""  # a relative import is an error, not a warning
    sys.modules[module.__name__] = module
    try:
        with redirect_stdout(sys.stderr):
            exec(code, module.__dict__)
    except BaseException:
        del sys.modules[module.__name__]
        raise
    return module


def _tools_of(module: ModuleType, groups: tuple[str, ...]) -> Iterator[Tool]:
    """Return the tools of a module, in the order of their definition."""
    own = [value for value in vars(module).values() if _is_own(value, module)]
    unique = {id(fn): fn for fn in own}.values()  # a function may have two names
    marked = [fn for fn in unique if hasattr(fn, _MARK)]
    for fn in marked or [fn for fn in unique if _is_public_and_annotated(fn)]:
        mark: _Mark = getattr(fn, _MARK, (None, {}))
        made = function_tool(fn, mark[0], **mark[1])
        yield made.replace(path=(*groups, *made.path))


def _is_own(value: object, module: ModuleType) -> bool:
    """True for a function that the module defines itself."""
    return callable(value) and getattr(value, "__module__", None) == module.__name__


def _is_public_and_annotated(value: object) -> bool:
    if not isinstance(value, FunctionType) or value.__name__.startswith("_"):
        return False
    code = value.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    names = {*code.co_varnames[:count], "return"}
    return names <= value.__annotations__.keys()


def _is_own_signal(failure: BaseException) -> bool:
    """True for an exception with which tooli itself stops a call."""
    return not isinstance(failure, Exception) and type(failure).__module__.startswith("tooli.")


def _describe(failure: BaseException) -> str:
    if isinstance(failure, SyntaxError):
        return f"line {failure.lineno}: {failure.msg}"
    try:
        text = str(getattr(failure, "message", None) or failure)
    except BaseException as error:  # the exception is a class of the file
        text = type(error).__name__
    if isinstance(failure, ImportError) and "relative import" in text:
        text += ". A file of the folder is a module of its own: import shared code from a package"
    kind = "" if isinstance(failure, DefinitionError) else f"{type(failure).__name__}: "
    return f"{kind}{text}"
