"""Output: a file that a tool writes, completely or not at all.

open ─▶ a temporary file next to the target ─┬─ success ─▶ synced, renamed to the target
                                             └─ failure ─▶ removed, the target is unchanged
"""

from __future__ import annotations

import io
import os
import sys

from tooli.core.tool import Handle
from tooli.schema import ConversionError
from tooli.text.jsonable import iter_items

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import IO, Any

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param


UNWRITTEN_MARKER = b"\0nothing was written here\0"


class Output:
    """A file to write, or `-` for stdout: `out.write_text(…)`, `with out.open("w") as file`.

    The target is replaced after the tool has succeeded.
    """

    __slots__ = ("_open_files", "_reserved_path", "_temporary_file", "field", "target")

    def __init__(self, target: str | os.PathLike[str]) -> None:
        self.target = os.fspath(target)
        self.field: str | None = None
        self._temporary_file: str | None = None
        self._reserved_path: str | None = None  # temporary file of a child process
        self._open_files: list[IO[Any]] = []

    @staticmethod
    def tooli_shape() -> OutputShape:
        """Return the shape of a parameter with this annotation."""
        return OutputShape()

    @property
    def is_stdout(self) -> bool:
        """True if the output goes to stdout."""
        return self.target == "-"

    @property
    def tooli_json(self) -> str:
        """The target, which represents the output in JSON."""
        return self.target

    @property
    def tooli_cli_text(self) -> str:
        """The target, as it is written on a command line."""
        return self.target

    @property
    def tooli_location(self) -> str | None:
        """The path that location checks examine; None for stdout."""
        return None if self.is_stdout else self.target

    def __repr__(self) -> str:
        return f"Output({self.target!r})"

    def open(
        self,
        mode: str = "w",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """Open the output for text, or for bytes with `"wb"`. Opening it again truncates it."""
        if mode not in ("w", "wt", "wb"):
            raise ValueError(f"the mode of an output must be 'w' or 'wb', not {mode!r}")
        binary = "b" in mode
        path = self._write_path()
        if path is None:
            return _StdoutBytes() if binary else _StdoutText()  # type: ignore[return-value]
        if binary:
            file = open(path, "wb", buffering)  # noqa: SIM115
        else:
            file = open(path, "w", buffering, encoding or "utf-8", errors, newline)  # noqa: SIM115
        self._open_files.append(file)
        return file

    def write_text(
        self,
        data: str,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> int:
        """Write the whole content as text."""
        with self.open("w", -1, encoding, errors, newline) as file:
            return file.write(data)

    def write_bytes(self, data: bytes) -> int:
        """Write the whole content as bytes."""
        with self.open("wb") as file:
            return file.write(data)

    def tooli_dry_run(self, record_action: Callable[..., object]) -> Output:
        """Return an output for a dry run: it records the action and writes nothing."""
        return _DryRunOutput(self, record_action)

    # -------------------------------------------------------------- commit and discard

    def _write_path(self) -> str | None:
        """Return the path to write: a temporary file next to the target; None for stdout.

        A device or a pipe is written directly.
        """
        if self.is_stdout:
            return None
        target = os.path.realpath(self.target)
        if os.path.exists(target) and not os.path.isfile(target):
            return target
        if self._temporary_file is None:
            temporary_path = self._reserved_path or _temporary_path(target)
            os.close(os.open(temporary_path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            self._temporary_file = temporary_path
            if os.path.exists(target):  # keep the permissions
                os.chmod(temporary_path, os.stat(target).st_mode & 0o7777)
        return self._temporary_file

    def create_temporary_file(self) -> str:
        """Create the temporary file for a process that may not create files; return its path.

        The file contains a marker until the tool opens it, so that an unused file is not committed.
        """
        path = self._write_path() or os.devnull
        if path == self._temporary_file:
            with open(path, "wb") as file:
                file.write(UNWRITTEN_MARKER)
        return path

    def choose_temporary_path(self) -> None:
        """Choose the path of the temporary file that a child process writes.

        The parent process then knows the file even if the child is killed.
        """
        if not self.is_stdout:
            self._reserved_path = _temporary_path(os.path.realpath(self.target))

    def adopt_temporary_file(self) -> None:
        """Take over the temporary file that the child process has written."""
        if self._reserved_path is not None and os.path.exists(self._reserved_path):
            self._temporary_file = self._reserved_path
            if _is_unwritten(self._reserved_path):
                self.discard()
        self._reserved_path = None

    def close(self) -> None:
        """Close all open files, so that buffered content is written."""
        for file in self._open_files:
            file.close()

    def commit(self) -> None:
        """Close all files and replace the target with the temporary file."""
        self.close()
        if self._temporary_file is not None:
            with open(self._temporary_file, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(self._temporary_file, os.path.realpath(self.target))
            self._temporary_file = None

    def discard(self) -> None:
        """Close all files and remove the temporary file."""
        for file in self._open_files:
            try:
                file.close()
            except OSError:  # the disk is full, and the content is discarded anyway
                pass
        if self._temporary_file is not None:
            try:
                os.unlink(self._temporary_file)
            except OSError:
                pass
            self._temporary_file = None


def _is_unwritten(path: str) -> bool:
    """True if a file still contains only the marker of `create_temporary_file`."""
    try:
        with open(path, "rb") as file:
            return file.read(len(UNWRITTEN_MARKER) + 1) == UNWRITTEN_MARKER
    except OSError:
        return False


def _temporary_path(target: str) -> str:
    """Return the path of a new temporary file in the folder of the target."""
    folder, name = os.path.split(target)
    return os.path.join(folder, f".{name[:80]}.{os.urandom(6).hex()}.tmp")


def find_outputs(arguments: Mapping[str, Any]) -> Iterator[Output]:
    """Yield the outputs among the arguments of a call, by parameter."""
    for value in arguments.values():
        for item in iter_items(value):
            if isinstance(item, Output):
                yield item


class _DryRunOutput(Output):
    """An output of a dry run, which records the action and writes nothing."""

    __slots__ = ("_record_action",)

    def __init__(self, output: Output, record_action: Callable[..., object]) -> None:
        super().__init__(output.target)
        self.field = output.field
        self._record_action: Callable[..., object] | None = record_action

    def _write_path(self) -> str:
        record_action, self._record_action = self._record_action, None
        if record_action is not None:
            record_action("write", self.target, None, None)
        return os.devnull


class OutputShape(Handle):
    """The shape of an output parameter."""

    expected_text = "the path of a file to write, or - for stdout"
    metavar = "FILE|-"

    def parse(self, value: object, param: Param, is_cli_text: bool) -> Any:
        """Return the output at a path."""
        if not isinstance(value, (str, os.PathLike, Output)):
            raise ConversionError("pass the path of a file to write")
        target: Any = value.target if isinstance(value, Output) else value  # pyright: ignore[reportUnknownVariableType]
        output = Output(target)
        output.field = param.name
        if not output.is_stdout:
            _check_target(output.target)
        return output

    def schema(self) -> JsonObject:
        """Return the JSON Schema of a path."""
        return {"type": "string", "format": "path"}


def _check_target(path: str) -> None:
    if not path or "\0" in path:
        raise ConversionError(f"{path!r} is not a path")
    target = os.path.realpath(path)
    if os.path.isdir(target) or path.endswith(("/", os.sep)):
        raise ConversionError(f"{path!r} is a directory, not a file")
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise ConversionError(f"the folder {os.path.dirname(path) or folder!r} does not exist")
    if os.path.exists(target) and not os.access(target, os.W_OK):
        raise ConversionError(f"{path!r} is not writable")
    if not os.path.exists(target) and not os.access(folder, os.W_OK):
        raise ConversionError(f"the folder {os.path.dirname(path) or folder!r} is not writable")


class _StdoutText(io.TextIOBase):
    """Text file on stdout; closing it does not close stdout."""

    def writable(self) -> bool:
        return True

    def write(self, s: str, /) -> int:
        return sys.stdout.write(s)

    def close(self) -> None:
        if not self.closed:
            sys.stdout.flush()
        super().close()


class _StdoutBytes(io.RawIOBase):
    """Binary file on stdout; closing it does not close stdout."""

    def writable(self) -> bool:
        return True

    def write(self, b: Any, /) -> int:
        sys.stdout.flush()
        sys.stdout.buffer.write(b)
        return len(b)

    def close(self) -> None:
        if not self.closed:
            sys.stdout.buffer.flush()
        super().close()
