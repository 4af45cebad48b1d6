"""Output: a file that a tool writes. All of it is there in the end, or the old one as it was.

open ─▶ a file beside the target ─┬─ the tool succeeded ─▶ synced, put in its place
                                  └─ it failed, was stopped ─▶ removed
"""

from __future__ import annotations

import io
import os
import sys

from tooli.core.tool import Handle
from tooli.schema.convert import ConversionError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import IO, Any

    from tooli.core.tool import Param


UNWRITTEN_MARKER = b"\0nothing was written here\0"


class Output:
    """A file to write, or `-` for stdout: `out.write_text(…)`, `with out.open("w") as file`.

    The file takes its place when the tool has succeeded, and not before.
    """

    __slots__ = ("_open_files", "_reserved_path", "_temporary_file", "field", "target")

    def __init__(self, target: str | os.PathLike[str]) -> None:
        self.target = os.fspath(target)
        self.field: str | None = None
        self._temporary_file: str | None = None
        self._reserved_path: str | None = None  # where another process writes it
        self._open_files: list[Any] = []

    @staticmethod
    def tooli_shape() -> OutputShape:
        """How a parameter of this type is given."""
        return OutputShape()

    @property
    def is_stdout(self) -> bool:
        """Whether it is written to stdout."""
        return self.target == "-"

    @property
    def tooli_json(self) -> str:
        """What stands for it in JSON and on a command line."""
        return self.target

    @property
    def tooli_cli_text(self) -> str:
        """What names it on a command line."""
        return self.target

    @property
    def tooli_location(self) -> str | None:
        """The path that it is at, for those who look where that leads."""
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
        """A file to write to: text, or bytes with `"wb"`. To open it again is to start over."""
        if mode not in ("w", "wt", "wb"):
            raise ValueError(f"an output is opened with 'w' or 'wb', not with {mode!r}")
        binary = "b" in mode
        if self.is_stdout:
            return _StdoutBytes() if binary else _StdoutText()  # type: ignore[return-value]
        path = self._write_path()
        text_options: dict[str, Any] = {}
        if not binary:
            text_options = {"encoding": encoding or "utf-8", "errors": errors, "newline": newline}
        file = open(path, "wb" if binary else "w", buffering, **text_options)  # noqa: SIM115
        self._open_files.append(file)
        return file

    def write_text(
        self,
        data: str,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> int:
        """Write all of it, as text."""
        with self.open("w", -1, encoding, errors, newline) as file:
            return file.write(data)

    def write_bytes(self, data: bytes) -> int:
        """Write all of it."""
        with self.open("wb") as file:
            return file.write(data)

    def tooli_dry_run(self, record_action: Callable[..., object]) -> Output:
        """The same output for a rehearsal: to write it is told, and leads nowhere."""
        return _DryRunOutput(self, record_action)

    # -------------------------------------------------------------- in the end

    def _write_path(self) -> str:
        """Where it is written to: beside the target, unless that is a device or a pipe."""
        target = os.path.realpath(self.target)
        if os.path.exists(target) and not os.path.isfile(target):
            return target
        if self._temporary_file is None:
            temporary_path = self._reserved_path or _temporary_path(target)
            os.close(os.open(temporary_path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            self._temporary_file = temporary_path
            if os.path.exists(target):  # it keeps who may read it
                os.chmod(temporary_path, os.stat(target).st_mode & 0o7777)
        return self._temporary_file

    def prepare(self) -> str:
        """Make the file now, for a process that will not be able to: its path.

        It holds a mark until somebody opens it, so that one which nobody wanted is no output.
        """
        path = self._write_path()
        if path == self._temporary_file:
            with open(path, "wb") as file:
                file.write(UNWRITTEN_MARKER)
        return path

    def reserve(self) -> None:
        """Choose where another process writes it, which may be killed before it can tell."""
        if not self.is_stdout:
            self._reserved_path = _temporary_path(os.path.realpath(self.target))

    def reclaim(self) -> None:
        """Take over what that process has written, be it to keep or to remove it."""
        if self._reserved_path is not None and os.path.exists(self._reserved_path):
            self._temporary_file = self._reserved_path
            if _is_unwritten(self._reserved_path):
                self.discard()
        self._reserved_path = None

    def close(self) -> None:
        """Let what was written be in its file."""
        for file in self._open_files:
            file.close()

    def commit(self) -> None:
        """Put what was written in its place."""
        self.close()
        if self._temporary_file is not None:
            with open(self._temporary_file, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(self._temporary_file, os.path.realpath(self.target))
            self._temporary_file = None

    def discard(self) -> None:
        """Leave no trace of what was written."""
        for file in self._open_files:
            try:
                file.close()
            except OSError:  # the disk is full: what it has not written is not wanted
                pass
        if self._temporary_file is not None:
            try:
                os.unlink(self._temporary_file)
            except OSError:
                pass
            self._temporary_file = None


def _is_unwritten(path: str) -> bool:
    """Whether nobody has opened a file that was prepared."""
    try:
        with open(path, "rb") as file:
            return file.read(len(UNWRITTEN_MARKER) + 1) == UNWRITTEN_MARKER
    except OSError:
        return False


def _temporary_path(target: str) -> str:
    """A name for a file that will take another's place."""
    folder, name = os.path.split(target)
    return os.path.join(folder, f".{name[:80]}.{os.urandom(6).hex()}.tmp")


def find_outputs(arguments: Mapping[str, Any]) -> Iterator[Output]:
    """The outputs among some arguments."""
    for value in arguments.values():
        for item in value if type(value) in (list, tuple, set, frozenset) else (value,):
            if isinstance(item, Output):
                yield item


class _DryRunOutput(Output):
    """An output that is not written, and says that it would be."""

    __slots__ = ("_record_action",)

    def __init__(self, output: Output, record_action: Callable[..., object]) -> None:
        super().__init__(output.target)
        self.field = output.field
        self._record_action: Callable[..., object] | None = record_action

    def open(
        self,
        mode: str = "w",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        record_action, self._record_action = self._record_action, None
        if record_action is not None:
            record_action("write", self.target, None, None)
        file = Output(os.devnull).open(mode, buffering, encoding, errors, newline)
        self._open_files.append(file)
        return file


class OutputShape(Handle):
    """A file to write."""

    def parse(self, value: Any, param: Param, is_cli_text: bool) -> Any:
        """The output that a text or a path names."""
        if not isinstance(value, (str, os.PathLike, Output)):
            raise ConversionError("give the path of a file to write")
        target: Any = value.target if isinstance(value, Output) else value  # pyright: ignore[reportUnknownVariableType]
        output = Output(target)
        output.field = param.name
        if not output.is_stdout:
            _check_target(output.target)
        return output

    def schema(self) -> dict[str, Any]:
        """A path."""
        return {"type": "string", "format": "path"}

    @property
    def expected_text(self) -> str:
        """What is to be given, in words."""
        return "the path of a file to write, or - for stdout"

    @property
    def metavar(self) -> str:
        """The same, as help has it."""
        return "FILE|-"


def _check_target(path: str) -> None:
    if not path or "\0" in path:
        raise ConversionError(f"{path!r} is no path")
    target = os.path.realpath(path)
    if os.path.isdir(target) or path.endswith(("/", os.sep)):
        raise ConversionError(f"{path!r} is a directory, not a file")
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise ConversionError(
            f"there is no folder {os.path.dirname(path) or folder!r} to write it into"
        )
    if os.path.exists(target) and not os.access(target, os.W_OK):
        raise ConversionError(f"{path!r} is not writable")
    if not os.path.exists(target) and not os.access(folder, os.W_OK):
        raise ConversionError(f"nothing can be written into {os.path.dirname(path) or folder!r}")


class _StdoutText(io.TextIOBase):
    """Stdout as a file that may be closed."""

    def writable(self) -> bool:
        return True

    def write(self, s: str, /) -> int:
        return sys.stdout.write(s)

    def close(self) -> None:
        if not self.closed:
            sys.stdout.flush()
        super().close()


class _StdoutBytes(io.RawIOBase):
    """The same for bytes."""

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
